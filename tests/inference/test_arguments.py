"""Arguments of the wrong type or out of range get a sentence, and what callers do with a result stays with them."""

import os
import signal

import numpy as np
import pytest
import torch
from PIL import Image

import vit_demo
from vit_demo.checks import find_device
from vit_demo.errors import InputError, LabelError, PresetError
from vit_demo.web.catalog.example_digits import example_picture

from ..asynchronous import PATIENCE


@pytest.fixture(scope="module")
def ex() -> vit_demo.Exploration:
    return vit_demo.explore(example_picture(3), "digits-tiny", patch_size=14)


@pytest.mark.parametrize("patch", [5, (1,), (1, 2, 3), "ab", (1.0, 1.0), (True, 1), None, (0, 2), (-1, 0), [[0], 1]])
def test_a_patch_is_a_row_and_a_column(ex, patch):
    uses = [ex.similarity, ex.drop_patches([(0, 0)]).similarity, lambda patch: ex.drop_patches([patch])]
    for use in uses if patch is None else [*uses, ex.rollout]:  # None is the class token there
        with pytest.raises(InputError, match="patch"):
            use(patch)


@pytest.mark.parametrize("label", [list(range(3000)), np.arange(3000), "x" * 5000, "two\nlines"])
def test_an_error_about_a_label_is_short(ex, label):
    with pytest.raises(LabelError, match="no class") as raised:
        ex.relevance(label)
    assert len(str(raised.value)) < 200 and "\n" not in str(raised.value)


def test_numpys_integers_are_whole_numbers(ex):
    one = np.int64(1)
    assert np.array_equal(ex.attention(block=one, head=one, query=(one, one)), ex.attention(1, 1, (1, 1)))
    assert ex.drop_patches([(one, one)]).dropped == ((1, 1),) == ex.drop_patches(zip([1], [1], strict=True)).dropped
    assert ex.top(one) == ex.top(1) and ex.relevance(one).shape == (2, 2)
    assert np.array_equal(ex.heatmap("occlusion", window=one), ex.heatmap("occlusion", window=1))


@pytest.mark.parametrize(
    "call",
    [
        lambda ex: ex.attention(head=1.0),
        lambda ex: ex.attention(head="1"),
        lambda ex: ex.attention(head=True),
        lambda ex: ex.attention(block=None),
        lambda ex: ex.attention(block=1.0),
        lambda ex: ex.norms(1.0),
        lambda ex: ex.top(-1),
        lambda ex: ex.top("3"),
        lambda ex: ex.faithfulness(steps=1.5),
        lambda ex: ex.faithfulness(steps=None),
        lambda ex: ex.faithfulness(seeds=-1),
        lambda ex: ex.faithfulness(np.full(ex.grid, np.nan)),
        lambda ex: ex.faithfulness(np.zeros((5, 5))),
        lambda ex: ex.drop_patches(5),
        lambda ex: ex.drop_patches(torch.tensor(5)),
        lambda ex: ex.drop_patches(torch.ones(2, 2, dtype=torch.bool)),
        lambda ex: ex.enough(without=None),
        lambda ex: ex.enough(share="0.5"),
        lambda ex: ex.needed(share=torch.ones(2)),
        lambda ex: ex.relevance(torch.tensor(True)),
        lambda ex: ex.kmeans(2.0),
        lambda ex: ex.kmeans(2, seed=-1),
        lambda ex: ex.drop_patches([(0, 0), (0, 1), (1, 0)]).kmeans(2),
        lambda ex: ex.pca(components=1.5),
        lambda ex: ex.similarity((0, 0), other="x"),
        lambda ex: ex.heatmap(["rollout"]),
        lambda ex: ex.overlay(np.zeros((5, 5))),
        lambda ex: ex.overlay(np.zeros((*ex.grid, 1))),
        lambda ex: ex.overlay([[1, 2], [3]]),
        lambda ex: ex.overlay([["a", "b"], ["c", "d"]]),
        lambda ex: ex.overlay(torch.zeros(ex.grid, requires_grad=True)),
        lambda ex: ex.overlay(np.zeros(ex.grid), alpha=1.5),
        lambda ex: ex.overlay(np.zeros(ex.grid), alpha=float("nan")),
        lambda ex: ex.overlay(np.zeros(ex.grid), alpha="0.5"),
        lambda ex: ex.faithfulness([[1, 2], [3]]),
        lambda ex: vit_demo.explore(ex.image, device="foo"),
        lambda ex: vit_demo.load("digits-tiny", device="foo"),
        lambda ex: vit_demo.Engine("foo"),
    ],
)
def test_other_arguments_get_a_sentence(ex, call):
    with pytest.raises(InputError, match=r"\S+ \S+ \S+"):
        call(ex)


@pytest.mark.parametrize("label", [1.0, [1], b"3", True, -1, 10, "x"])
def test_a_label_is_a_name_or_its_index(ex, label):
    with pytest.raises(LabelError, match="has no class"):
        ex.relevance(label)


@pytest.mark.parametrize("preset", [["digits-tiny"], 3])
def test_a_preset_is_a_name(ex, preset):
    with pytest.raises(PresetError, match="chosen by its name"):
        vit_demo.explore(ex.image, preset)
    with pytest.raises(PresetError, match="chosen by its name"):
        vit_demo.load(preset)


@pytest.mark.parametrize("size", [7.0, "7", 5, [7]])
def test_a_patch_size_is_one_of_the_presets(ex, size):
    vit_demo.explore(ex.image, "digits-tiny", patch_size=7)  # a cached result changes nothing
    with pytest.raises(PresetError, match=r"has no patch size .* choose one of"):
        vit_demo.explore(ex.image, "digits-tiny", patch_size=size)


def test_patches_without_a_value_are_not_painted(ex):
    left = ex.drop_patches([(0, 0)])
    values = left.norms()
    assert np.isnan(values[0, 0])
    plain, found = (np.asarray(left.overlay(one, alpha=a)) for one, a in ((values * 0 + 1, 0), (values, 0.6)))
    middle = found.shape[0] // 2
    assert np.array_equal(found[: middle - 2, : middle - 2], plain[: middle - 2, : middle - 2])
    assert not np.array_equal(found[middle + 2 :], plain[middle + 2 :])
    values[0, 0] = np.inf
    assert np.array_equal(np.asarray(left.overlay(values)), found)
    assert np.array_equal(np.asarray(left.overlay(torch.from_numpy(values).tolist())), found)


def test_the_logits_of_a_shared_result_cannot_be_changed(ex):
    with pytest.raises(ValueError, match="read-only"):
        ex.logits[:] = 0
    assert ex.top(1)[0][0] == "3" and ex.drop_patches([(0, 0)]).logits.flags.writeable is False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_has_threads_of_its_own(ex):
    picture = Image.fromarray(np.asarray(ex.image).T.copy())
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)  # a child that waits forever fails the test
        runner = vit_demo.service.engine.get_engine().jobs
        os._exit(0 if runner.run("a", lambda: picture.size, "digits") == picture.size else 1)
    assert os.waitpid(child, 0)[1] == 0, "a job of the child waited for a thread of the parent"


def test_a_device_that_is_not_there_gets_a_list_of_those_that_are(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"no device 'cuda:99': choose cpu\.$"):
        find_device("cuda:99")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("mps"))
    with pytest.raises(InputError, match=r"choose cpu or mps\.$"):
        find_device("cuda:99")
