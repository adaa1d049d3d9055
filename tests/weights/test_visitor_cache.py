"""Untrusted names: no token and no cache of the operator is used for them, and disk space is bounded."""

import os
import threading
from dataclasses import replace

import pytest
from huggingface_hub import constants, get_hf_file_metadata
from safetensors.torch import load, save

from vit_demo.errors import CheckpointError, PresetError
from vit_demo.weights import PRESETS, find_preset, limits
from vit_demo.weights.checkpoints import load_model
from vit_demo.weights.hub import visitor_cache
from vit_demo.weights.hub.download import fetch

from ..asynchronous import PATIENCE

TOKEN = "hf_of_the_operator"
WEIGHTS = "model.safetensors"


@pytest.fixture(params=["environment", "file"])
def logged_in(request, monkeypatch, tmp_path):
    """The operator's token, where huggingface_hub looks for it."""
    if request.param == "environment":
        monkeypatch.setenv("HF_TOKEN", TOKEN)
    else:
        (tmp_path / "token").write_text(TOKEN)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.delenv("HF_TOKEN", raising=False)


def test_no_token_is_sent_for_an_untrusted_name(hub, published, logged_in):
    hub.repositories["someone/cats"] = published.files
    preset = find_preset("someone/cats", trusted=False)
    load_model(preset)
    assert not preset.trusted and hub.gets(WEIGHTS) == hub.gets("config.json") == 1
    # Metadata, download and redirect of three files, one of which is not there.
    assert len(hub.authorizations) >= 6 and set(hub.authorizations) == {None}


def test_only_the_operator_reaches_a_private_repository(hub, published, logged_in):
    hub.repositories["operator/secret"] = published.files
    hub.tokens["operator/secret"] = TOKEN
    with pytest.raises(CheckpointError, match="or not public: check its name"):
        find_preset("operator/secret", trusted=False)
    mine = find_preset("operator/secret")
    load_model(mine)
    assert mine.trusted and f"Bearer {TOKEN}" in hub.authorizations
    # Even now that it lies in the operator's cache.
    with pytest.raises(CheckpointError, match="or not public"):
        find_preset("operator/secret", trusted=False)
    with pytest.raises(CheckpointError, match="or not public"):
        find_preset(f"operator/secret@{mine.revision}", trusted=False)


def test_named_presets_use_the_operators_token_and_cache(hub, published, logged_in, tmp_path):
    repo = PRESETS["vit-ti16"].repo
    hub.repositories[repo] = published.files
    with pytest.raises(CheckpointError, match="holds another network"):  # the network there is a smaller one
        load_model(find_preset("vit-ti16", trusted=False))
    assert (tmp_path / "cache").is_dir() and not visitor_cache.folder().exists()
    assert f"Bearer {TOKEN}" in hub.authorizations


def test_the_folder_of_the_visitor_cache(hub, monkeypatch, tmp_path):
    assert visitor_cache.folder() == tmp_path / "vit_demo-visitors"
    monkeypatch.setenv("VIT_DEMO_VISITOR_CACHE", str(tmp_path / "chosen"))
    assert visitor_cache.folder() == tmp_path / "chosen"


@pytest.mark.parametrize(
    "name",
    ["FOLDER", "vit_demo", "vit_demo/weights/..", "/etc", "../x", "a/../b", "a/b@../../refs/main", "a/b@", "a/b@x/../y",
     "a/b/c", "a\0/b", "ä/b", "a/" + "b" * 200, "a/b@" + "c" * 200, "a/b\n", "-/b", "https://a/b"],
)  # fmt: skip
def test_an_untrusted_name_is_never_a_path(hub, published, tmp_path, monkeypatch, name):
    if name == "FOLDER":
        (tmp_path / "folder").mkdir()
        for file, content in published.files.items():
            (tmp_path / "folder" / file).write_bytes(content)
        monkeypatch.chdir(tmp_path)
        name = "folder"
    with pytest.raises(PresetError) as refused:
        find_preset(name, trusted=False)
    assert not hub.seen and "\n" not in str(refused.value) and len(str(refused.value)) < 400


@pytest.mark.parametrize("name", ["a/" + "b" * 5000, "a\0/b", "\ud800/x", "x" * 100_000])
def test_odd_names_are_refused_in_python_too(hub, name):
    with pytest.raises(PresetError) as refused:
        find_preset(name)
    assert not hub.seen and len(str(refused.value).encode()) < 500


def test_a_folder_does_not_shadow_a_repository_of_the_same_name(hub, published, tmp_path, monkeypatch):
    (tmp_path / "someone" / "cats").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    hub.repositories["someone/cats"] = published.files
    assert find_preset("someone/cats", trusted=False).source == "hub"


# The disk.


def publish_many(hub, published, count):
    """Publishes repositories that share no files; returns their names and the size of one."""
    names = [f"someone/m{i}" for i in range(count)]
    for i, name in enumerate(names):
        tensors = load(published.files[WEIGHTS])
        tensors["head.bias"] = tensors["head.bias"] + i
        hub.repositories[name] = {**published.files, WEIGHTS: save(tensors)}
    return names, sum(map(len, published.files.values()))


def cached_repositories():
    return sorted(path.name.rsplit("--", 1)[1] for path in visitor_cache.folder().glob("models--*"))


def size_on_disk():
    return sum(p.stat().st_size for p in visitor_cache.folder().rglob("*") if p.is_file() and not p.is_symlink())


def test_the_least_recently_used_is_evicted(hub, published, monkeypatch):
    names, size = publish_many(hub, published, 4)
    monkeypatch.setattr(limits, "VISITOR_CACHE_BYTES", int(3.5 * size))
    presets = [find_preset(name, trusted=False) for name in names[:3]]
    for age, name in enumerate(names[:3]):  # as if they had been fetched one hour after the other
        for blob in (visitor_cache.folder() / f"models--someone--m{age}" / "blobs").iterdir():
            os.utime(blob, (1e9 + 3600 * age,) * 2)
        assert name == presets[age].name
    load_model(presets[0])  # used again
    find_preset(names[3], trusted=False)
    assert cached_repositories() == ["m0", "m2", "m3"] and size_on_disk() <= limits.VISITOR_CACHE_BYTES
    load_model(presets[1])  # what was thrown away is fetched again
    assert cached_repositories() == ["m0", "m1", "m3"]


def test_one_repository_cannot_fill_it_by_its_revisions(hub, published, monkeypatch):
    names, size = publish_many(hub, published, 4)
    monkeypatch.setattr(limits, "VISITOR_CACHE_BYTES", int(2.5 * size))
    for i, name in enumerate(names):
        hub.repositories["someone/changing"] = hub.repositories[name]
        find_preset(f"someone/changing@{str(i) * 40}", trusted=False)
        assert size_on_disk() <= limits.VISITOR_CACHE_BYTES
    monkeypatch.setattr(limits, "MAX_VISITOR_REVISIONS", 1)
    fetch(names[0], "config.json", "main", trusted=False, max_bytes=10_000)
    assert cached_repositories() == ["m0"], "small ones are counted"


def test_files_in_use_are_not_evicted(hub, published, monkeypatch):
    names, size = publish_many(hub, published, 3)
    monkeypatch.setattr(limits, "VISITOR_CACHE_BYTES", int(1.5 * size))
    first = find_preset(names[0], trusted=False)
    with visitor_cache.in_use(first.repo, first.revision):
        with pytest.raises(CheckpointError, match="Too many models are being downloaded right now"):
            find_preset(names[1], trusted=False)
        assert "m0" in cached_repositories()
    find_preset(names[1], trusted=False)
    assert "m0" not in cached_repositories()


def test_files_being_downloaded_count(hub, monkeypatch):
    monkeypatch.setattr(limits, "VISITOR_CACHE_BYTES", 1000)
    visitor_cache.folder().mkdir(parents=True)
    started, done = threading.Event(), threading.Event()

    def slow_download():
        with visitor_cache.reserve_space("a/b", "c", 600):
            started.set()
            done.wait(PATIENCE)

    thread = threading.Thread(target=slow_download)
    thread.start()
    assert started.wait(PATIENCE)
    with pytest.raises(CheckpointError, match="Too many models"), visitor_cache.reserve_space("d/e", "f", 600):
        pass
    done.set()
    thread.join()
    with visitor_cache.reserve_space("d/e", "f", 600):
        pass


def test_remains_of_an_interrupted_download_are_removed(hub, published):
    names, _ = publish_many(hub, published, 1)
    broken = visitor_cache.folder() / "models--gone--away" / "blobs"
    broken.mkdir(parents=True)
    (broken / "x.incomplete").write_bytes(b"x" * 1000)
    find_preset(names[0], trusted=False)
    assert cached_repositories() == ["m0"]


def test_a_large_json_is_not_fetched(hub, published, monkeypatch):
    hub.repositories["someone/large"] = {**published.files, "config.json": b" " * (limits.MAX_JSON_BYTES + 1)}
    with pytest.raises(CheckpointError, match=r"config\.json of someone/large has 1\.0 MB"):
        find_preset("someone/large", trusted=False)
    assert hub.gets("config.json") == 0


def test_a_download_beyond_the_limit_is_aborted(hub, published, monkeypatch):
    """As when a mirror sends no size, or a compressed response expands."""
    hub.repositories["someone/cats"] = published.files

    def silent(*args, **kwargs):
        return replace(get_hf_file_metadata(*args, **kwargs), size=None)

    monkeypatch.setattr("vit_demo.weights.hub.download.get_hf_file_metadata", silent)
    with pytest.raises(CheckpointError, match="choose a model with at most"):
        fetch("someone/cats", WEIGHTS, "main", trusted=False, max_bytes=10_000)
    assert size_on_disk() < 10_000


def test_no_message_reveals_the_path_of_the_cache(hub, published, monkeypatch, tmp_path):
    hub.repositories["someone/cats"] = {**published.files, WEIGHTS: b"x" * 6000}
    with pytest.raises(CheckpointError) as damaged:
        find_preset("someone/cats", trusted=False)
    hub.repositories["someone/dogs"] = published.files

    def full(*_, **__):
        raise OSError(28, "No space left on device", str(tmp_path / "cache"))

    monkeypatch.setattr("vit_demo.weights.hub.download.hf_hub_download", full)
    with pytest.raises(CheckpointError, match="No space left on device") as no_space:
        find_preset("someone/dogs", trusted=False)
    assert str(tmp_path) not in f"{damaged.value} {no_space.value}"


def test_files_that_cannot_be_deleted_are_not_tried_for_ever(hub, published, monkeypatch):
    names, size = publish_many(hub, published, 2)
    find_preset(names[0], trusted=False)
    monkeypatch.setattr(limits, "VISITOR_CACHE_BYTES", int(1.5 * size))
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.DeleteCacheStrategy.execute", lambda strategy: None)
    with pytest.raises(CheckpointError, match="try again in a few minutes"):
        find_preset(names[1], trusted=False)
