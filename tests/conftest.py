"""For all tests: one thread; tiny, seeded networks, their traces, their passes written out with softmax matrices."""

from __future__ import annotations

from .environment import HUB_HOME  # before torch, numpy and huggingface_hub read the environment

# isort: split

import copy
import functools
import gc
import itertools
import os
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import gradio.http_server
import pytest
import torch
from PIL import Image
from torch import Tensor

from vit_demo.model import ViT, ViTConfig
from vit_demo.service.engine import _engines
from vit_demo.trace import OwnViT, Trace, TracedViT
from vit_demo.web.guard import compression, uploads

from .asynchronous import delay_servers

# Each process of pytest-xdist has its own range of ports: an MCP server cannot start again if another took its port.
gradio.http_server.INITIAL_PORT_VALUE += 100 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])

TESTS = Path(__file__).parent

gc.disable()  # while the tests are imported, which leaves little garbage


QUICK = "features inference methods metrics model render service trace"
"""Folders whose tests need neither a server, nor a browser, nor files of other libraries."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two at most, since some tests start servers of their own."""
    return min(2, os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of some folders as quick; brings all into another order if ``VIT_DEMO_ORDER`` has a seed.

    The tests of a file stay together, which share what is costly to start.
    """
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in QUICK.split():
            item.add_marker("quick")
    if seed := os.environ.get("VIT_DEMO_ORDER"):
        files: dict[Path, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.path, []).append(item)
        choose, groups = random.Random(seed), list(files.values())
        for group in (groups, *groups):
            choose.shuffle(group)
        items[:] = itertools.chain(*groups)


def pytest_collection_finish() -> None:
    """Leaves what is imported out of garbage collection, which would take a fifteenth of the tests' time."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _frozen() -> None:
    """What earlier files have left is not looked through again each time that a network is loaded."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Ends jobs, which would abort the interpreter, and lets it free what was left out, which would count as leaked."""
    for engine in _engines.values():
        engine.jobs.close(10)
    gc.unfreeze()
    HUB_HOME.cleanup()


def pytest_sessionstart() -> None:
    """Fixtures of a whole module run on one thread, too; servers are slow if ``VIT_DEMO_DELAYS`` has a seed."""
    torch.set_num_threads(1)
    if seed := os.environ.get("VIT_DEMO_DELAYS"):
        delay_servers(seed)


@pytest.fixture(scope="session", autouse=True)
def compress_again() -> Iterator[Callable[[bytes], bytes]]:
    """What each server would spend seconds on, for later visitors; it is replaced, and so is compressing the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "compress", functools.cache(compression.compress))
        real = compression._smallest
        patch.setattr(compression, "_smallest", lambda content: content)
        yield real


@pytest.fixture(autouse=True)
def _seeded_on_one_thread() -> Iterator[None]:
    """Tensors this small lose more to the hand-over between threads than they gain."""
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    assert not Path(HUB_HOME.name, "hub").exists(), "a download into a cache that all tests share"


@pytest.fixture
def trace_of() -> Callable[..., Trace]:
    """Makes the trace of one pass; keywords are fields of the config."""

    def run(batch: int = 2, size: tuple[int, int] = (16, 16), dtype: torch.dtype = torch.float32, **fields):
        shape = {"image_size": 16, "patch_size": 4, "num_classes": 5, "embed_dim": 24, "depth": 3, "num_heads": 3}
        model, trace = OwnViT(ViT(ViTConfig(**{**shape, **fields})).eval()), Trace()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
        with torch.inference_mode():
            model.to(dtype)(torch.randn(batch, fields.get("in_channels", 3), *size, dtype=dtype), trace)
        return trace

    return run


@pytest.fixture
def network() -> Callable[..., TracedViT]:
    """Makes a network whose every parameter is random; keywords are fields of the config."""

    def make(**fields) -> TracedViT:
        shape = {"image_size": 16, "patch_size": 4, "num_classes": 5, "embed_dim": 24, "depth": 3, "num_heads": 3}
        model = ViT(ViTConfig(**{**shape, **fields})).eval().requires_grad_(False)
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
        return OwnViT(model)

    return make


@dataclass
class Explicit:
    """A pass in float64 with every attention matrix in its graph: ``[B, H, N, N]``, values ``[B, H, N, d]``."""

    logits: Tensor
    attention: list[Tensor]
    values: list[Tensor]
    tokens: list[Tensor]


@pytest.fixture
def explicit() -> Callable[..., Explicit]:
    """The whole network by the definition; ``hidden`` lists tokens that no token may look at."""

    def run(network: TracedViT, images: Tensor, patch_size: int | None = None, hidden: Sequence[int] = ()) -> Explicit:
        model, p = copy.deepcopy(network.module).double(), patch_size or network.patch_size
        assert isinstance(model, ViT)
        images = images.double().requires_grad_()
        x = model.embed(images, (images.shape[2] // p, images.shape[3] // p), p)
        found = Explicit(torch.empty(0), [], [], [x])
        for block in model.blocks:
            qkv = block.attn.qkv(block.norm1(x)).unflatten(2, (3, model.config.num_heads, -1))
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            scores = q @ k.mT / q.shape[-1] ** 0.5
            if hidden:
                scores[..., list(hidden)] = float("-inf")
            attention = scores.softmax(-1)
            x = x + block.ls1(block.attn.proj((attention @ v).transpose(1, 2).flatten(2)))
            x = x + block.ls2(block.mlp(block.norm2(x)))
            found.attention.append(attention)
            found.values.append(v)
            found.tokens.append(x)
        found.logits = model.forward_head(model.norm(x))
        return found

    return run


@pytest.fixture
def written_out() -> Callable[[Trace, int], Tensor]:
    """A block's attention ``[B, H, N, N]`` in float64, one row of one head at a time."""

    def matrix(trace: Trace, block: int) -> Tensor:
        q, k = trace.q[block].double(), trace.k[block].double()
        batch, heads, n, d = q.shape
        full = torch.empty(batch, heads, n, n, dtype=torch.float64)
        for b in range(batch):
            for h in range(heads):
                for i in range(n):
                    weights = torch.exp(k[b, h] @ q[b, h, i] / d**0.5)
                    full[b, h, i] = weights / weights.sum()
        return full

    return matrix


@pytest.fixture
def upload() -> Callable[[Image.Image], dict[str, str]]:
    """Puts a picture into the upload folder and gives what a page would send for it."""

    def put(picture: Image.Image, name: str = "photo.png") -> dict[str, str]:
        path: Path = uploads.folder() / secrets.token_hex(32) / name
        path.parent.mkdir()
        picture.save(path)
        return {"path": str(path)}

    return put
