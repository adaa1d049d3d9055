"""Which networks of other libraries can be traced, and whether what is seen of them is exact.

    python -m benchmarks coverage --most 100e6 --workers 8

For every architecture of timm and for the classes of transformers, with random weights: which of the two tests of
``vit_demo.trace.proof`` a network fails, or what else it is refused for. If it is accepted: the output is the network's
own, from memory and from a folder; attention, and relevance, are those of explicit matrices; and leaving tokens out
gives what masking them gives. Plain Vision Transformers with more parameters than ``--most`` run without numbers, on
the meta device: one attention is seen for each that they have. Others of that size are left out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn

from benchmarks.explicit import Explicit
from vit_demo.errors import InputError
from vit_demo.methods import attention_matrix
from vit_demo.methods.relevance import relevance
from vit_demo.methods.targets import pooling_weights
from vit_demo.trace import Trace, TracedViT, adapt
from vit_demo.trace.outputs import logits_of
from vit_demo.weights import find_preset
from vit_demo.weights.checkpoints import load_model
from vit_demo.weights.hub.preprocessing import preprocessing_of

MODULES = ("vision_transformer", "deit", "eva", "beit", "naflexvit", "vision_transformer_relpos")
TRANSFORMERS = {
    "ViTConfig": "ViTForImageClassification",
    "DeiTConfig": "DeiTForImageClassification",
    "Dinov2Config": "Dinov2ForImageClassification",
    "Dinov2WithRegistersConfig": "Dinov2WithRegistersForImageClassification",
    "DINOv3ViTConfig": "DINOv3ViTModel",
    "BeitConfig": "BeitForImageClassification",
    "CLIPVisionConfig": "CLIPVisionModelWithProjection",
    "SiglipVisionConfig": "SiglipVisionModel",
}
FAILED = {"mixes its tokens": "isolation", "is not softmax(q k^T) v": "replacement"}
"""What a refusal says of a failed test."""
CLOSE = 1e-3
"""Largest difference, as a share of the largest value."""


def names() -> list[str]:
    """Every network: its library, or for timm whether it is a plain Vision Transformer, and its name there."""
    import timm

    plain = {
        name: timm.models.model_entrypoint(name).__module__.rpartition(".")[2] in MODULES for name in timm.list_models()
    }
    found = [f"{'plain' if is_plain else 'other'} {name}" for name, is_plain in plain.items()]
    return found + [f"transformers {config}" for config in TRANSFORMERS]


def build(name: str) -> nn.Module:
    """A network of ``names``, with random weights."""
    library, _, name = name.partition(" ")
    if library != "transformers":
        import timm

        return timm.create_model(name)
    import transformers

    shape = {"hidden_size": 96, "num_hidden_layers": 4, "num_attention_heads": 3, "attn_implementation": "sdpa"}
    return getattr(transformers, TRANSFORMERS[name])(getattr(transformers, name)(**shape))


def close(found: Tensor, expected: Tensor, added: float = 0.0) -> bool:
    """Whether two results are the same but for rounding, also of what was added to them and taken away again."""
    limit = CLOSE * expected.abs().max().clamp_min(1e-6) + 1e-6 * added
    return bool((found.float() - expected).abs().max() <= limit)


def check(module: nn.Module, *, from_folder: bool = True) -> list[str]:
    """What differs; empty if all is exact.

    Raises:
        InputError: If the network cannot be traced.
    """
    generator = torch.Generator().manual_seed(0)
    for parameter in module.eval().parameters():
        if parameter.ndim < 2 or not parameter.std():
            parameter.data += 0.02 * torch.randn(parameter.shape, generator=generator)
    size = preprocessing_of(module).image_size
    network = adapt(module, size)
    images, trace, wrong = torch.randn(1, 3, size, size, generator=generator), Trace(), []
    with torch.no_grad():
        found, expected = network(images, trace), logits_of(module(images))
    if not close(found, expected):
        wrong.append("output")
    if from_folder and not close(_from_folder(module)(images), expected):
        wrong.append("output from a folder")
    with Explicit() as explicit:
        score = logits_of(module(images.clone().requires_grad_()))[0, 0]
    if len(explicit.matrices) != trace.num_blocks or not all(
        close(attention_matrix(trace, block), matrix.detach()) for block, matrix in enumerate(explicit.matrices)
    ):
        return [*wrong, "attention"]
    with_tokens = Trace(record_tokens=True)
    with torch.no_grad():
        network(images, with_tokens)
    shares, prefix = pooling_weights(network, with_tokens, 0), network.config.num_prefix_tokens
    expected = explicit.relevance(score, shares, network.calls_per_block)[0, prefix:]
    if not close(relevance(network, images, 0).flatten(), expected, float(shares.abs().max())):
        wrong.append("relevance")
    if not network.structure.drops:
        return wrong
    kept = torch.arange(0, trace.grid[0] * trace.grid[1], 3)[None]
    with torch.no_grad():
        dropped = network(images, kept_patches=kept)
        network.leaves_out = False
        if not close(dropped, network(images, kept_patches=kept)):
            wrong.append("dropping")
    return wrong


@torch.no_grad()
def _from_folder(module: nn.Module) -> TracedViT:
    """The network as it comes from a folder in which its library saved it."""
    with TemporaryDirectory() as folder:
        if hasattr(module, "save_pretrained"):
            module.save_pretrained(folder)
        else:
            import timm

            timm.models.save_for_hf(module, folder, safe_serialization=True)
        preset = find_preset(folder)
        return load_model(preset, preset.default_patch_size)


def check_structure(name: str) -> list[str]:
    """What differs in the structure of a network, which runs without numbers."""
    with torch.device("meta"):
        module = build(name).eval()
        size = preprocessing_of(module).image_size
        with Trace() as trace, torch.no_grad():
            module(torch.zeros(1, 3, size, size))
    expected = sum(hasattr(one, "fused_attn") and "Pool" not in type(one).__name__ for one in module.modules())
    expected *= 2 if any("Diff" in type(one).__name__ for one in module.modules()) else 1
    return [] if len(trace.q) == expected else [f"{len(trace.q)} attentions of {expected}"]


def outcome(most: float, ends: float, name: str) -> tuple[str, str]:
    """What came of one network, and what there is to say of it; ``ends`` is the time after which none is begun."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if time.time() > ends:
        return "not run", ""
    library = name.partition(" ")[0]
    try:
        with torch.device("meta"):
            is_large = library != "transformers" and sum(p.numel() for p in build(name).parameters()) > most
        if is_large and library == "other":
            return "left out", ""
        wrong = check_structure(name) if is_large else check(build(name), from_folder=library != "other")
    except InputError as error:
        test = next((test for words, test in FAILED.items() if words in str(error)), "not a plain ViT")
        return f"refused, {test}", str(error)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {str(error)[:150]}"
    if wrong:
        return "different", ", ".join(wrong)
    return "traced" if is_large else "exact", ""


def main() -> None:
    """Prints what cannot be traced or differs, and how many can."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=100e6, help="parameters of a network that is run")
    parser.add_argument("--seconds", type=float, default=3600, help="after which no other network is begun")
    parser.add_argument("--workers", type=int, default=1, help="processes, each on one core")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        work = partial(outcome, options.most, time.time() + options.seconds)
        found = {pool.submit(work, name): name for name in names()}
        for future in as_completed(found):
            name, (came, text) = found[future], future.result()
            counts[f"{name.partition(' ')[0]}: {came}"] += 1
            if text:
                print(f"{name}: {came}: {text}", flush=True)
    print(dict(sorted(counts.items())))


if __name__ == "__main__":
    main()
