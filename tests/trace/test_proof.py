"""Networks that people bring: each is accepted and right, or refused with one sentence."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from benchmarks.explicit import Explicit
from vit_demo.errors import PresetError
from vit_demo.methods import METHODS, attention_matrix, attention_rows
from vit_demo.trace import Trace, adapt
from vit_demo.trace import adapter as adapter_module

from .networks import Own, own, timm_vit, transformers_network

pytestmark = pytest.mark.filterwarnings("ignore")


class Encoder(nn.Module):
    """torch's own encoder, batch first or sequence first, as OpenAI's CLIP has it."""

    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.stem, self.place = nn.Conv2d(3, 24, 8, 8), nn.Parameter(torch.randn(1, 17, 24))
        self.cls_token = nn.Parameter(torch.randn(1, 1, 24))
        layer = nn.TransformerEncoderLayer(24, 3, 48, activation="gelu", norm_first=True, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head, self.batch_first = nn.Linear(24, 5), batch_first

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).mT
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.place
        x = self.encoder(x) if self.batch_first else self.encoder(x.transpose(0, 1)).transpose(0, 1)
        return self.head(x[:, 0])


class Lists(Own):
    """Blocks that take and return lists of tokens, as the official code of DINOv3 has them."""

    class InLists(Own.Layer):
        def forward(self, tokens: list[Tensor]) -> list[Tensor]:
            return [super(Lists.InLists, self).forward(x) for x in tokens]

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([self.InLists() for _ in range(3)])

    def forward(self, images: Tensor) -> Tensor:
        x = [self.stem(images).flatten(2).transpose(1, 2) + self.place]
        for layer in self.layers:
            x = layer(x)
        return self.head(x[0].mean(1))


class Returns(nn.Module):
    """A network whose logits are within something else."""

    def __init__(self, put: Callable[[Tensor, Tensor], object]) -> None:
        super().__init__()
        self.inner, self.put = timm_vit()(), put

    def forward(self, images: Tensor) -> object:
        x = self.inner.forward_features(images)
        return self.put(x, self.inner.forward_head(x))


def registers_at_the_end() -> nn.Module:
    vit_pytorch = pytest.importorskip("vit_pytorch.simple_vit_with_register_tokens")
    return vit_pytorch.SimpleViT(
        image_size=32, patch_size=8, num_classes=5, dim=24, depth=3, heads=3, mlp_dim=48, dim_head=8
    )


def transformers_model(config: str, name: str, **options: object) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        transformers = pytest.importorskip("transformers")
        made = transformers_network(config)().config
        return getattr(transformers, name)(made, **options)

    return make


def masked_autoencoder() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    return transformers.ViTMAEModel(
        transformers.ViTMAEConfig(
            image_size=32, patch_size=8, hidden_size=24, num_hidden_layers=3, num_attention_heads=3,
            intermediate_size=48,
        )
    )  # fmt: skip


def with_checkpointing() -> nn.Module:
    module = timm_vit()()
    module.set_grad_checkpointing()
    return module


ACCEPTED: dict[str, Callable[[], nn.Module]] = {
    "nn.TransformerEncoder": lambda: Encoder(batch_first=True),
    "nn.TransformerEncoder, sequence first": lambda: Encoder(batch_first=False),
    "blocks that take lists": Lists,
    "registers after the patches": registers_at_the_end,
    "ViTModel without pooler": transformers_model("ViTConfig", "ViTModel", add_pooling_layer=False),
    "masked autoencoder": masked_autoencoder,
    "gradient checkpointing": with_checkpointing,
    "a tuple": lambda: Returns(lambda tokens, logits: (tokens, logits)),
    "a dict": lambda: Returns(lambda tokens, logits: {"tokens": tokens, "logits": logits}),
    "DataParallel": lambda: nn.DataParallel(timm_vit()()),
    "bfloat16": lambda: timm_vit()().bfloat16(),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_networks_that_people_bring_are_exact(name, images):
    torch.manual_seed(0)
    module = ACCEPTED[name]().eval()
    network, trace = adapt(module, 32), Trace(record_tokens=True)
    images = images.to(network.dtype)
    with torch.no_grad():
        found = network(images, trace)
        if name != "masked autoencoder":  # alone, it drops three quarters of the patches, at random
            with Explicit() as explicit:
                module(images)
            suffix = network.structure.suffix
            for block, matrix in enumerate(explicit.matrices):
                expected = matrix.float().roll((suffix, suffix), (2, 3))
                tolerance = 2e-2 if network.dtype == torch.bfloat16 else 1e-5
                torch.testing.assert_close(attention_matrix(trace, block), expected, atol=tolerance, rtol=1e-3)
        torch.testing.assert_close(network.forward_head(trace.tokens[-1]), found, atol=1e-5, rtol=1e-3)
    assert trace.num_blocks == 3 and trace.grid == (4, 4) and len(trace.tokens) == (4 if network.shows_tokens else 2)
    # A change of one patch arrives at its own token.
    other, again = images.clone(), Trace(record_tokens=True)
    other[:, :, 8:16, 24:] += 1
    with torch.no_grad():
        network(other, again)
    change = (again.tokens[0] - trace.tokens[0]).abs().amax((0, 2))
    assert change.nonzero().flatten().tolist() == [network.config.num_prefix_tokens + 4 * 1 + 3]
    if network.config.num_classes:
        assert network.config.num_classes == 5
        for method in ("relevance", "attnlrp", "libra_fullgrad"):
            values = METHODS[method].function(network, images, 3)
            assert values.shape == (2, 4, 4) and torch.isfinite(values).all() and values.abs().max() > 0


def test_a_masked_autoencoder_sees_every_patch_once(images):
    torch.manual_seed(0)
    module = masked_autoencoder().eval()
    network = adapt(module, 32)
    with torch.no_grad():
        found = network(images)
    module.config.mask_ratio = 0.0
    with torch.no_grad():  # in any order: the class token does not depend on it
        expected = module(images).last_hidden_state[:, 0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_what_a_pass_switches_off_is_on_again_after_it(images):
    module, autoencoder = with_checkpointing(), masked_autoencoder()
    for one in (module, autoencoder):
        network = adapt(one, 32)
        with torch.no_grad():
            network(images)
    assert module.grad_checkpointing and autoencoder.config.mask_ratio == 0.75


def test_a_head_that_needs_every_token_lets_no_patch_be_removed(images):
    network = adapt(registers_at_the_end().eval(), 32)
    with pytest.raises(PresetError, match="cannot be removed"):
        network(images, kept_patches=torch.arange(8)[None])


class Repeats(Own):
    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).transpose(1, 2) + self.place
        for _ in range(3):
            x = self.layers[0](x)
        return self.head(x.mean(1))


class Mixes(Own):
    """A convolution between tokens, before the first block that has attention."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.norm = nn.Conv1d(24, 24, 3, padding=1), nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        x = self.norm(self.stem(images).flatten(2).transpose(1, 2) + self.place)
        x = x + self.mix(x.mT).mT
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


class Columns(Own):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images.mT)


def made_in_inference_mode() -> nn.Module:
    with torch.inference_mode():
        return own()


def two_towers() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    shape = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 32}
    text = {"vocab_size": 50, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    vision = {"image_size": 32, "patch_size": 8}
    return transformers.CLIPModel(transformers.CLIPConfig(text_config=shape | text, vision_config=shape | vision))


def hierarchical() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    return transformers.PvtForImageClassification(
        transformers.PvtConfig(
            image_size=32, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 4]
        )
    )


def timm_model(name: str, **options: object) -> Callable[[], nn.Module]:
    return lambda: pytest.importorskip("timm").create_model(name, num_classes=5, **options)


REFUSED: dict[str, tuple[Callable[[], nn.Module], int, str]] = {
    "ConViT": (timm_model("convit_tiny", depth=3, local_up_to_layer=1), 224, "in 2 of 3 blocks"),
    "Twins": (timm_model("twins_svt_small"), 64, "hierarchical"),
    "PVT": (hierarchical, 32, "hierarchical"),
    "XCiT": (timm_model("xcit_nano_12_p16_224", depth=2), 64, "not between its tokens"),
    "CaiT": (timm_model("cait_xxs24_224", depth=2, img_size=64), 64, "softmax was seen"),
    "TNT": (timm_model("tnt_s_patch16_224", depth=2, img_size=64), 64, "hierarchical"),
    "CrossViT": (timm_model("crossvit_tiny_240"), 240, "hierarchical"),
    "Hiera": (timm_model("hiera_tiny_224"), 224, "hierarchical"),
    "Swin": (timm_model("swin_tiny_patch4_window7_224"), 224, "hierarchical"),
    "a block that runs three times": (Repeats, 32, "more than once"),
    "a convolution between tokens": (Mixes, 32, "something else mixes"),
    "patches column by column": (Columns, 32, "moves the pixels"),
    "a network of pictures and text": (two_towers, 32, "pass its part for images"),
    "made in inference mode": (made_in_inference_mode, 32, "make it outside"),
    "int8": (
        lambda: torch.ao.quantization.quantize_dynamic(own(), {nn.Linear}, dtype=torch.qint8), 32, "floating-point",
    ),
    "compiled": (lambda: torch.compile(own()), 32, "compiled"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_seen_whole_is_refused(name):
    make, size, words = REFUSED[name]
    torch.manual_seed(0)
    with pytest.raises(PresetError, match=words):
        adapt(make().eval(), size)


def test_the_proof_is_made_once_for_a_network_and_again_if_a_part_is_replaced(monkeypatch):
    proofs, prove = list[object](), adapter_module.prove
    monkeypatch.setattr(adapter_module, "prove", lambda *given: proofs.append(given) or prove(*given))
    module = own()
    assert adapt(module, 32).structure is adapt(module, 32).structure and len(proofs) == 1
    module.layers[1] = Own.Layer().eval()
    adapt(module, 32)
    assert len(proofs) == 2


def test_proving_takes_at_most_six_plain_passes(monkeypatch):
    module, passes = own(), list[int]()
    prove = adapter_module.prove

    def counted(*given: object) -> bool:
        handle = module.register_forward_pre_hook(lambda _, args: passes.append(len(args[0])))
        try:
            return prove(*given)
        finally:
            handle.remove()

    monkeypatch.setattr(adapter_module, "prove", counted)
    adapt(module, 32)
    assert passes == [1, 1, 1, 2, 1, 1]  # the last runs the head alone


def test_threads_that_find_and_run_one_network_do_not_hear_each_other(images):
    module = own()
    with torch.no_grad():
        expected = module(images)
    start = threading.Barrier(4)

    def work(_: int) -> Tensor:
        start.wait()
        adapter_module._found.pop(module, None)
        trace = Trace()
        with torch.no_grad():
            found = adapt(module, 32)(images, trace)
        assert trace.num_blocks == 3
        return found

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, range(4)):
            assert torch.equal(found, expected)


def test_a_gradient_of_zero_gives_a_map_of_zeros(images, monkeypatch):
    module = own()
    module.head.weight.data[3] = 0
    monkeypatch.setattr(attention_rows, "is_short", lambda q: False)
    for name in ("libra_fullgrad", "relevance", "attnlrp"):
        assert not METHODS[name].function(adapt(module, 32), images, 3).any()


def test_rectangles_are_found_and_traced(images):
    module = timm_vit(img_size=(32, 48))()
    network, trace = adapt(module, (32, 48)), Trace()
    wide = torch.cat([images, images[..., :16]], 3)
    with torch.no_grad():
        assert torch.equal(network(wide, trace), module(wide))
    assert trace.grid == (4, 6) and network.image_size == (32, 48)
    values = METHODS["relevance"].function(network, wide, 3)
    assert values.shape == (2, 4, 6)
