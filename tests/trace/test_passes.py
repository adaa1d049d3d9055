"""What a pass leaves behind, and what passes of several threads do to each other: nothing."""

import copy
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

import vit_demo
from vit_demo import methods
from vit_demo.features import logit_lens, patch_tokens
from vit_demo.metrics import randomization
from vit_demo.trace import Trace, TracedViT, adapt
from vit_demo.trace.attention_mode import AttentionMode

from ..asynchronous import PATIENCE
from .networks import NETWORKS, Own, of_this_package, own, plain, timm_vit, transformers_network

pytestmark = pytest.mark.filterwarnings("ignore")

Make = Callable[[], nn.Module]
DROPOUT = {
    "ours": of_this_package(dropout=0.5, drop_path=0.5),
    "timm": timm_vit(proj_drop_rate=0.5, attn_drop_rate=0.5),
    "own": lambda: nn.Sequential(nn.Dropout(0.5), own()),
}
FEW = {name: NETWORKS[name] for name in ("ours", "timm vit", "own", "torchvision", "transformers ViT")}
few = pytest.mark.parametrize("make", FEW.values(), ids=FEW)


def passes(network: TracedViT) -> dict[str, Callable[[Tensor], Any]]:
    """One pass of each kind, with all that it shows."""
    kept = torch.tensor([[0, 3, 5, 6, 9, 15], [1, 2, 4, 8, 10, 11]])

    def seen(images: Tensor, **options: Any) -> Any:
        recording = Trace(record_tokens=True)
        return network(images, recording, **options), recording.q, recording.k, recording.v, recording.tokens

    return {
        "recorded": seen,
        "replaced": lambda images: network(images, attention_fn=lambda q, k, v: v.flip(2)),
        "dropped": lambda images: seen(images, kept_patches=kept),
        "plain": lambda images: plain(network.module, images),
    }


def in_lockstep(module: nn.Module, calls: list[Callable[[], Any]]) -> list[Any]:
    """What several threads get that enter each part of the network together."""
    barrier = threading.Barrier(len(calls), timeout=PATIENCE)

    def wait(*_: Any) -> None:
        barrier.wait()

    handles = [part.register_forward_pre_hook(wait) for part in module.modules() if isinstance(part, nn.LayerNorm)]
    try:
        with ThreadPoolExecutor(len(calls)) as pool, torch.inference_mode():
            return [one.result() for one in [pool.submit(torch.inference_mode()(call)) for call in calls]]
    finally:
        for handle in handles:
            handle.remove()


@few
def test_threads_that_run_one_network_see_nothing_of_each_other(make: Make, images: Tensor) -> None:
    """Each has its own wrapper of the network, or all have one."""
    module = make()
    with torch.inference_mode():
        expected = {name: call(images) for name, call in passes(adapt(module, 32)).items()}
    shared = adapt(module, 32)
    for networks in ([shared] * 4, [adapt(module, 32) for _ in range(4)]):
        calls = [passes(network)[name] for network, name in zip(networks, expected, strict=True)]
        found = in_lockstep(module, [lambda call=call: call(images) for call in calls])
        torch.testing.assert_close(found, list(expected.values()), atol=1e-6, rtol=1e-5)
    assert not torch.allclose(expected["replaced"], expected["plain"])


@pytest.mark.parametrize("make", DROPOUT.values(), ids=DROPOUT)
def test_a_network_in_training_mode_runs_without_dropout_until_its_last_thread_is_done(make: Make, images) -> None:
    module = make().eval()
    with torch.inference_mode():
        expected = plain(module, images)
    module.train()
    first, second = (adapt(module, 32) for _ in range(2))
    is_within, may_end = threading.Event(), threading.Event()

    def slowly(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        is_within.set()
        assert may_end.wait(PATIENCE)
        return F.scaled_dot_product_attention(q, k, v)

    def fast() -> Tensor:
        assert is_within.wait(PATIENCE)
        return second(images, Trace())

    with ThreadPoolExecutor(2) as pool:
        slow, quick = pool.submit(first, images, attention_fn=slowly), pool.submit(fast)
        torch.testing.assert_close(quick.result(), expected, atol=1e-6, rtol=1e-5)
        assert all(one.training for one in module.modules()), "in this thread"
        may_end.set()
        torch.testing.assert_close(slow.result(), expected, atol=1e-6, rtol=1e-5)
    assert all(one.training for one in module.modules())
    with ThreadPoolExecutor(2) as pool:  # and a pass that begins while another has switched to eval mode outlasts it
        is_within.clear()
        may_end.clear()
        slow = pool.submit(second, images, attention_fn=slowly)
        first(images)
        assert is_within.wait(PATIENCE)
        first(images)
        may_end.set()
        torch.testing.assert_close(slow.result(), expected, atol=1e-6, rtol=1e-5)


@contextmanager
def explained(network: TracedViT, images: Tensor) -> Iterator[None]:
    """While another thread is in the midst of a pass, which then gives what it would have given."""
    is_within, may_end = threading.Event(), threading.Event()
    expected = network(images)

    def slowly(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        is_within.set()
        assert may_end.wait(PATIENCE)
        return F.scaled_dot_product_attention(q, k, v)

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(network, images, attention_fn=slowly)
        try:
            assert is_within.wait(PATIENCE)
            yield
        finally:
            may_end.set()
        torch.testing.assert_close(slow.result(), expected, atol=1e-6, rtol=1e-5)


def step(module: nn.Module, images: Tensor) -> list[Tensor | None]:
    """The outputs and gradients of a training step, with seeded dropout."""
    module.zero_grad()
    torch.manual_seed(0)
    found = plain(module, images)
    found.square().sum().backward()
    return [found.detach(), *(one.grad for one in module.parameters())]


def shifted(norm: nn.BatchNorm2d) -> nn.BatchNorm2d:
    norm.running_mean += 2
    return norm


RANDOM = {
    **DROPOUT,
    "transformers": transformers_network("ViTConfig", hidden_dropout_prob=0.5),
    "batch norm": lambda: nn.Sequential(shifted(nn.BatchNorm2d(3, momentum=0.0)), own()),
}


@pytest.mark.parametrize("make", RANDOM.values(), ids=RANDOM)
def test_a_network_that_is_explained_is_trained_in_another_thread_as_ever(make: Make, images: Tensor) -> None:
    module = make().eval()
    evaluated = plain(module, images).detach()
    expected = step(module.train(), images)
    assert not torch.allclose(expected[0], evaluated), "the mode matters"
    kinds = {type(one): dict(vars(type(one))) for one in module.modules()}
    network = adapt(module, 32)
    with explained(network, images):
        torch.testing.assert_close(step(module, images), expected)
        fresh = nn.Linear(3, 3)
        assert fresh.training and not fresh.eval().training, "as are others of its classes"
        module.eval()
        torch.testing.assert_close(plain(module, images).detach(), evaluated)
    assert not any(one.training for one in module.modules()), "what another thread has set stays"
    assert {kind: dict(vars(kind)) for kind in kinds} == kinds


class Flagged(Own):
    """Notes what each thread sees of what decides how it runs."""

    grad_checkpointing = False  # as some classes have it, too

    def __init__(self) -> None:
        super().__init__()
        self.grad_checkpointing = self.gradient_checkpointing = True
        self.config, self.seen = SimpleNamespace(mask_ratio=0.75), dict[int, set[Any]]()

    def forward(self, images: Tensor) -> Tensor:
        now = self.training, self.grad_checkpointing, self.gradient_checkpointing, self.config.mask_ratio
        self.seen.setdefault(threading.get_ident(), set()).add(now)
        return super().forward(images)


def test_what_decides_how_a_network_runs_is_each_threads_own(images: Tensor) -> None:
    module = Flagged().train()
    network = adapt(module, 32)
    with explained(network, images):
        module.seen.clear()
        module(images)
        assert module.seen == {threading.get_ident(): {(True, True, True, 0.75)}}
        network(images)
    assert module.seen.pop(threading.get_ident()) == {(True, True, True, 0.75), (False, False, False, 0.0)}
    assert Flagged.grad_checkpointing is False and not hasattr(Flagged, "training")


@pytest.mark.parametrize("make", [NETWORKS["timm vit"], own], ids=["timm", "own"])
def test_tokens_are_read_in_one_thread_while_others_run_the_network(make: Make, images: Tensor) -> None:
    module, x = make(), torch.randn(2, 17, 24)
    first, second = (adapt(module, 32) for _ in range(2))
    with torch.no_grad():
        expected, logits = first(images), first.forward_head(x)
    is_within, may_end = threading.Event(), threading.Event()

    def wait(*_: Any) -> None:
        if threading.current_thread() is not threading.main_thread() and not is_within.is_set():
            is_within.set()
            assert may_end.wait(PATIENCE)

    module.head.register_forward_pre_hook(wait)
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(first.forward_head, x)
        assert is_within.wait(PATIENCE)
        torch.testing.assert_close(second(images), expected)
        other = pool.submit(second.forward_head, x)  # waits for the first to be done
        may_end.set()
        torch.testing.assert_close((slow.result(), other.result()), (logits, logits))
        torch.testing.assert_close(first(images), expected)


def mixed(module: nn.Module) -> list[bool]:
    """Puts a network in training mode and every third of its parts in eval mode."""
    module.train()
    for one in list(module.modules())[1::3]:
        one.training = False
    return [one.training for one in module.modules()]


@pytest.mark.parametrize("make", DROPOUT.values(), ids=DROPOUT)
def test_all_that_is_computed_leaves_the_network_as_it_was(make: Make, images: Tensor) -> None:
    module = make()
    modes = mixed(module)
    weights = {name: value.clone() for name, value in module.state_dict().items()}
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    random, attributes = torch.get_rng_state(), [set(vars(one)) for one in module.modules()]
    network = adapt(module, 32)
    for name, method in methods.METHODS.items():
        method.compute(network, images[:1], 3, **({"budget": 8} if name == "local_surrogate" else {}))
    logit_lens(network, images)
    patch_tokens(network, images[:1])
    randomization(network, images[:1], 3, "rollout")
    assert [one.training for one in module.modules()] == modes
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in module.modules())
    assert [set(vars(one)) for one in module.modules()] == attributes
    assert all(torch.equal(parameter.grad, torch.ones_like(parameter)) for parameter in module.parameters())
    assert all(torch.equal(value, weights[name]) for name, value in module.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)


@few
def test_an_exception_within_a_pass_leaves_nothing_behind(make: Make, images: Tensor) -> None:
    module = make()
    network, modes = adapt(module, 32), mixed(module)

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    last = [[one for one in module.modules() if isinstance(one, kind)][-1] for kind in (nn.LayerNorm, nn.Linear)]
    handles = [one.register_forward_pre_hook(fail) for one in last]
    for call in (*passes(network).values(), lambda images: network.forward_head(torch.zeros(1, 17, 24))):
        with pytest.raises(ZeroDivisionError):
            call(images)
    with pytest.raises(ZeroDivisionError), vit_demo.Trace():
        module(images)
    for handle in handles:
        handle.remove()
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in module.modules())
    assert not any("forward" in vars(one) for one in module.modules())
    assert not _get_current_function_mode_stack()
    assert [one.training for one in module.modules()] == modes


def test_a_forward_that_another_library_replaced_is_there_again(images: Tensor) -> None:
    module = own()
    for layer in module.layers:
        layer.forward = lambda x, forward=layer.forward: forward(x) + 1
    with torch.no_grad():
        expected = module(images)
        network = adapt(module, 32)
        torch.testing.assert_close(network(images), expected)
        x = torch.randn(1, 16, 24)
        torch.testing.assert_close(network.forward_head(x), module.head(x.mean(1)))
        assert torch.equal(module(images), expected)


class Counting(TorchFunctionMode):
    """What a program may run around anything."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += func is F.scaled_dot_product_attention
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("make", [NETWORKS["ours"], NETWORKS["timm vit"], own])
def test_modes_around_a_pass_and_within_each_other_see_the_same(make: Make, images: Tensor) -> None:
    network, expected, recording = adapt(make(), 32), Trace(), Trace()
    with torch.no_grad():
        logits = network(images, expected)
        with Counting() as outer, vit_demo.Trace() as around, vit_demo.Trace() as inner, Counting() as within:
            assert torch.equal(network(images, recording), logits)
    assert outer.seen == within.seen == 3
    for trace in (around, inner):
        torch.testing.assert_close((trace.q, trace.k, trace.v), (expected.q, expected.k, expected.v))
    torch.testing.assert_close(recording.q, expected.q)


@few
def test_the_default_device_and_dtype_of_a_program_change_nothing(make: Make, images: Tensor) -> None:
    """With another default device as where the network is on an accelerator, and the default is the CPU."""
    module = make()
    network = adapt(module, 32)
    expected = [methods.METHODS[name].compute(network, images, 3) for name in ("rollout", "relevance")]
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            other = adapt(module, 32)
            found = [methods.METHODS[name].compute(other, images, 3) for name in ("rollout", "relevance")]
    finally:
        torch.set_default_dtype(torch.float32)
    assert (other.config, other.structure) == (network.config, network.structure)
    torch.testing.assert_close(found, expected)


def test_what_a_network_makes_of_attention_weights_stays_the_same(images: Tensor) -> None:
    """Also with a mask and with dropout in training mode, which the trace leaves alone."""
    attention, x = nn.MultiheadAttention(24, 3, 0.5, batch_first=True), torch.randn(2, 7, 24)
    mask = torch.ones(7, 7, dtype=torch.bool).triu(1)
    for options in ({}, {"attn_mask": mask}, {"average_attn_weights": False}, {"need_weights": False}):
        expected = attention.eval()(x, x, x, **options)
        with vit_demo.Trace() as trace:
            found = attention(x, x, x, **options)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
        assert trace.attention().shape == (2, 3, 7, 7)
    with vit_demo.Trace():
        first, second = (attention.train()(x, x, x, need_weights=False)[0] for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("axes", [2, 3, 4, 5])
def test_attention_with_any_number_of_axes_is_that_of_the_definition(axes: int) -> None:
    """Also one that is none of a block's, such as between the tokens of one image."""
    q, k, v = torch.randn(3, *(2, 2, 3, 5, 4)[5 - axes :], dtype=torch.float64)
    with AttentionMode(batch=2):
        found = F.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(found, (q @ k.mT / 2).softmax(-1) @ v)


def test_samples_of_a_batch_keep_apart(network: TracedViT, images: Tensor) -> None:
    together, kept = Trace(record_tokens=True), torch.tensor([[0, 3, 5, 6], [1, 2, 4, 8]])
    with torch.no_grad():
        logits = network(images, together, kept_patches=kept)
        for i in range(2):
            alone = Trace(record_tokens=True)
            found = network(images[i : i + 1], alone, kept_patches=kept[i : i + 1])
            torch.testing.assert_close(found[0], logits[i], atol=1e-5, rtol=1e-4)
            for name in ("q", "k", "v", "tokens"):
                expected = [one[i] for one in getattr(together, name)]
                torch.testing.assert_close([one[0] for one in getattr(alone, name)], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"])
def test_a_copy_gives_the_same_and_is_a_network_of_its_own(network: TracedViT, images: Tensor, copied) -> None:
    other = copied(network)
    assert (other.config, other.structure, other.patch_size) == (network.config, network.structure, network.patch_size)
    with torch.no_grad():
        logits, first, second = network(images), Trace(), Trace()
        assert torch.equal(other(images, first), network(images, second)) and len(first.q) == len(second.q) == 3
        for parameter in other.parameters():
            parameter.zero_()
        assert torch.equal(network(images), logits) and not other(images).any()


@few
@pytest.mark.parametrize("precision", ["bfloat16", "float16", "autocast"])
def test_low_precision_gives_float32_maps_near_the_exact_ones(make: Make, precision: str, images: Tensor) -> None:
    network, names = adapt(make(), 32), ("attention", "rollout", "norm_attention", "relevance", "attnlrp", "occlusion")
    exact = {name: methods.METHODS[name].compute(network, images[:1], 3) for name in names}
    lens = logit_lens(network, images)
    if precision != "autocast":
        network = adapt(network.module.to(getattr(torch, precision)), 32)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
        for name, expected in exact.items():
            found = methods.METHODS[name].compute(network, images[:1], 3)
            assert found.dtype == torch.float32
            assert torch.corrcoef(torch.stack([found.flatten(), expected.flatten()]))[0, 1] > 0.95, name
        rough = logit_lens(network, images)
        with vit_demo.Trace() as trace:
            plain(network.module, images.to(network.dtype))
        found = trace.attention(0)
    exact = (trace.q[0].double() * 8**-0.5 @ trace.k[0].double().mT).softmax(-1).float()
    torch.testing.assert_close(found, exact, atol=1e-6, rtol=1e-5)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, lens, atol=0.1 * float(lens.abs().max()), rtol=0)
