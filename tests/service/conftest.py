"""A tiny network with seeded weights in the place of a photo preset, and a runner of jobs with little memory."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from vit_demo.inference import networks
from vit_demo.model import ViT, ViTConfig
from vit_demo.service import job
from vit_demo.service.engine import Engine
from vit_demo.service.job_limits import WorkerPool
from vit_demo.service.jobs import JobRunner
from vit_demo.trace import OwnViT
from vit_demo.weights import PRESETS

from ..asynchronous import PATIENCE

TINY = ViTConfig(image_size=32, patch_size=8, num_classes=3, embed_dim=16, depth=3, num_heads=2)
HALF = (0.5, 0.5, 0.5)


@pytest.fixture
def photo():
    noise = np.random.default_rng(0).integers(0, 256, (40, 64, 3), np.uint8)
    return Image.fromarray(noise)


@pytest.fixture(params=["cls", "mean"])
def tiny(request, monkeypatch):
    """An engine whose only photo preset is a small random network."""
    torch.manual_seed(0)
    config = replace(TINY, pool=request.param, class_token=request.param == "cls")
    sizes = {"patch_sizes": (4, 8), "default_patch_size": 8}
    preset = replace(PRESETS["photos-tiny"], config=config, labels=("a", "b", "c"), mean=HALF, **sizes)
    model = OwnViT(ViT(config).eval())
    monkeypatch.setitem(PRESETS, "photos-tiny", preset)
    loads = []
    monkeypatch.setattr(networks, "load_model", lambda preset, size: loads.append(size) or model)
    engine = Engine("cpu")
    return engine, model, loads


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """What waits on a busy machine is still wanted."""
    monkeypatch.setattr(job, "GRACE", PATIENCE)


@pytest.fixture
def all_count(monkeypatch):
    """Jobs count however little memory they need."""
    monkeypatch.setattr("vit_demo.service.jobs.SMALL_JOB", 0)


@pytest.fixture
def runner():
    runner = JobRunner({"quick": WorkerPool(1, 4), "slow": WorkerPool(1, 4), "wide": WorkerPool(4, 4)}, nbytes=100)
    yield runner
    runner.close()
