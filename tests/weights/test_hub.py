"""Downloads over HTTP from a Hub on this machine: the cache, the hashes, and every kind of failure."""

import errno
import os
import pickle
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from huggingface_hub import constants

import vit_demo
from vit_demo.errors import CheckpointError, PresetError
from vit_demo.service.job import Cancelled
from vit_demo.weights import PRESETS, Preset
from vit_demo.weights.checkpoints import load_model
from vit_demo.weights.hub.connection import SILENCE, Call
from vit_demo.weights.hub.download import MissingFileError, _progress_bar, fetch

from ..asynchronous import a_moment
from .hub_server import COMMIT

WEIGHTS = "model.safetensors"


@pytest.fixture
def preset(hub, published, monkeypatch) -> Preset:
    """``vit-ti16``, shortened, with its repository on the test Hub."""
    whole = PRESETS["vit-ti16"]
    short = replace(whole, config=replace(whole.config, image_size=64, depth=1, num_classes=3), labels=("a", "b", "c"))
    hub.repositories[whole.repo] = published.files
    monkeypatch.setitem(PRESETS, "vit-ti16", short)
    return short


def test_first_use_downloads_once_and_loads_the_published_network(hub, published, preset):
    model = load_model(preset, 16)
    images = torch.randn(1, 3, 64, 64)
    with torch.inference_mode():
        torch.testing.assert_close(model(images), published.model(images), atol=1e-4, rtol=0)
    assert not model.training and not any(p.requires_grad for p in model.parameters())
    assert hub.gets(WEIGHTS) == 1 and load_model(preset, 32).patch_size == 32
    assert hub.gets(WEIGHTS) == 1


def test_cached_files_need_no_network(hub, preset):
    load_model(preset)
    requests = len(hub.seen)
    hub.close()
    load_model(preset)
    assert len(hub.seen) == requests


def test_a_preset_is_downloaded_at_its_pinned_commit(hub, preset):
    load_model(preset)
    path = fetch(preset.repo, WEIGHTS, preset.revision)
    assert path.parent.name == preset.revision != COMMIT and hub.gets(WEIGHTS) == 1


def test_progress_reaches_the_last_byte(published, preset):
    updates = []
    fetch(preset.repo, WEIGHTS, "main", lambda *update: updates.append(update))
    size = len(published.files[WEIGHTS])
    assert updates[-1] == (WEIGHTS, size, size)
    assert [done for _, done, _ in updates] == sorted(done for _, done, _ in updates)
    bar = _progress_bar(lambda *update: updates.append(update), preset.repo, WEIGHTS, 5, Call(), threading.Event())()
    bar.update(5), bar.update(0)
    assert updates[-1] == (WEIGHTS, 5, 0), "without a total"


def test_without_a_progress_function_there_is_a_bar_on_stderr(preset, capfd):
    fetch(preset.repo, WEIGHTS, "main")
    out, error = capfd.readouterr()
    assert WEIGHTS in error and "100%" in error and not out


def test_a_broken_connection_is_resumed(hub, published, preset, monkeypatch):
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1 << 16)
    monkeypatch.setattr("huggingface_hub.file_download.time", SimpleNamespace(sleep=lambda seconds: None))
    hub.cuts = 1
    path = fetch(preset.repo, WEIGHTS, "main")
    assert path.read_bytes() == published.files[WEIGHTS]
    assert len(hub.ranges) == 1 and hub.ranges[0] != "bytes=0-"


def test_an_interrupted_download_leaves_nothing_and_can_be_repeated(hub, published, preset, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.file_download.time", SimpleNamespace(sleep=lambda seconds: None))
    hub.cuts = 100
    with pytest.raises(CheckpointError, match=r"could not be downloaded .* choose the bundled photos-tiny"):
        fetch(preset.repo, WEIGHTS, "main")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.stat().st_size > 1000]
    hub.cuts = 0
    assert fetch(preset.repo, WEIGHTS, "main").read_bytes() == published.files[WEIGHTS]


def test_a_file_with_a_wrong_hash_is_refused_and_deleted(hub, published, preset):
    hub.tampered = True
    with pytest.raises(CheckpointError, match="damaged: its hash differs from the Hub"):
        load_model(preset)
    hub.tampered = False
    load_model(preset)
    assert hub.gets(WEIGHTS) == 2


@pytest.mark.parametrize("filename", [WEIGHTS, "config.json"])
def test_damage_in_the_cache_is_detected(hub, preset, filename):
    path = fetch(preset.repo, filename, "main")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.resolve().write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        fetch(preset.repo, filename, "main")
    fetch(preset.repo, filename, "main")


def test_a_missing_file_is_named(hub, preset):
    del hub.repositories[preset.repo][WEIGHTS]
    with pytest.raises(MissingFileError, match=rf"{preset.repo} has no {WEIGHTS}"):
        load_model(preset)


def test_a_missing_repository_and_revision_are_named(preset):
    with pytest.raises(CheckpointError, match="nobody/nothing is not on the Hub"):
        fetch("nobody/nothing", WEIGHTS, "main")
    with pytest.raises(CheckpointError, match="no revision 'v9'"):
        fetch(preset.repo, WEIGHTS, "v9")
    with pytest.raises(PresetError, match="org/name"):
        fetch("a/b/c", WEIGHTS, "main")


def test_a_huge_file_is_not_downloaded(hub, preset, monkeypatch):
    monkeypatch.setattr("vit_demo.weights.limits.MAX_WEIGHTS_BYTES", 1000)
    with pytest.raises(CheckpointError, match="choose a model with at most"):
        load_model(preset)
    assert hub.gets(WEIGHTS) == 0


@pytest.mark.parametrize("how", ["closed", "offline"])
def test_without_a_network_the_message_offers_the_bundled_preset(hub, preset, monkeypatch, how):
    if how == "closed":
        hub.close()
    else:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError) as refused:
        vit_demo.explore(torch.zeros(70, 80, 3, dtype=torch.uint8).numpy(), "vit-ti16")
    sentence = str(refused.value)
    assert {"closed": "the Hub does not respond", "offline": "set to work offline"}[how] in sentence
    assert "bundled photos-tiny" in sentence and "\n" not in sentence and "Error" not in sentence
    assert not hub.seen


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_is_never_opened(hub, preset, tmp_path):
    payload = pickle.dumps(Payload(tmp_path / "executed"))
    files = hub.repositories[preset.repo]
    hub.repositories[preset.repo] = {"config.json": files["config.json"], "pytorch_model.bin": payload * 200}
    for name in (f"{preset.repo}", "vit-ti16"):
        with pytest.raises(CheckpointError, match=WEIGHTS):
            vit_demo.load(name)
    hub.repositories[preset.repo][WEIGHTS] = payload * 200
    with pytest.raises(CheckpointError, match="damaged"):
        vit_demo.load("vit-ti16")
    assert not any("pytorch_model.bin" in request for request in hub.seen)
    assert not (tmp_path / "executed").exists()


def test_a_full_disk_is_named_and_the_download_can_be_repeated(hub, preset, monkeypatch):
    def write(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as context:
        context.setattr("huggingface_hub.file_download.http_get", write)
        with pytest.raises(
            CheckpointError, match=r"could not be downloaded \(No space left on device\): try again, or"
        ):
            load_model(preset, 16)
    load_model(preset, 16)


@pytest.mark.parametrize("name", ["ETag", "X-Repo-Commit", "X-Linked-ETag"])
def test_no_header_of_a_mirror_writes_outside_the_cache(hub, published, tmp_path, name):
    hub.repositories["some/model"] = {"config.json": published.files["config.json"]}
    hub.forged = {name: '"../../../../outside"'}
    before = set(tmp_path.rglob("*"))
    with pytest.raises(CheckpointError, match="which is not valid: use another mirror"):
        fetch("some/model", "config.json", "main")
    assert not [path for path in set(tmp_path.rglob("*")) - before if "outside" in path.name]


def test_leaving_a_download_leaves_no_lock_behind(hub, published, monkeypatch):
    """``tqdm`` has one lock for the whole process; all other downloads would wait for it until a restart."""
    hub.repositories["some/model"] = {"model.safetensors": b"0" * 200_000}

    monkeypatch.setattr("vit_demo.weights.hub.connection.SILENCE", 5.0)

    def leave(*_: object) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        fetch("some/model", "model.safetensors", "main", leave)
    assert fetch("some/model", "model.safetensors", "main", lambda *_: None).stat().st_size == 200_000


def test_a_slow_download_goes_on_while_bytes_arrive(hub, monkeypatch):
    """Two pieces, together longer than the Hub may be silent, by a clock that only they move."""
    hub.repositories["some/model"] = {WEIGHTS: b"0" * 200_000}
    now = [0.0]
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 100_000)
    monkeypatch.setattr("vit_demo.weights.hub.connection.time", SimpleNamespace(monotonic=lambda: now[0]))

    def wait(*_: object) -> None:
        now[0] += 0.75 * SILENCE
        a_moment()
        a_moment()  # until it has been seen whether to give up

    assert fetch("some/model", WEIGHTS, "main", wait).stat().st_size == 200_000 and now[0] > SILENCE
