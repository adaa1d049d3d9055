"""A small network learns digits; what it learns follows from the seed, and from nothing that others do meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import vit_demo
from vit_demo.cli import main
from vit_demo.errors import InputError
from vit_demo.model import ViTConfig
from vit_demo.training import small
from vit_demo.training.loop import updates
from vit_demo.training.small import quick_digits, random_network, shift, train_small
from vit_demo.weights.digit_folders import save_digits

TINY = ViTConfig(
    image_size=28, patch_size=7, in_channels=1, num_classes=10, embed_dim=32, depth=1, num_heads=2, mlp_ratio=2.0
)


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.fixture(scope="module")
def trained():
    return train_small(TINY, steps=120, learning_rate=0.005)


def test_a_tiny_network_learns(trained):
    model, history = trained
    assert history.steps == len(history.loss) == 120 and not model.training
    assert np.mean(history.loss[-20:]) < 0.75 * np.mean(history.loss[:20])
    steps, accuracy = history.accuracy[-1]
    assert steps == 120 and accuracy > 0.4
    digits, labels = quick_digits()
    with torch.no_grad():  # of the digits that it never saw, all at once
        right = model(digits[5000:]).argmax(1) == labels[5000:]
    assert right.float().mean() == pytest.approx(accuracy, abs=0.002)


def test_without_a_learning_rate_nothing_is_learned():
    model, _ = train_small(TINY, steps=5, learning_rate=0.0, seed=3)
    assert torch.equal(weights(model), weights(random_network(TINY, 3)))


def test_shuffled_labels_say_nothing_about_new_digits():
    _, history = train_small(TINY, steps=120, learning_rate=0.005, shuffle_labels=True)
    assert history.accuracy[-1][1] < 0.2


def test_the_digits_are_balanced_and_none_is_in_both_parts():
    digits, labels = quick_digits()
    assert torch.bincount(labels[:5000]).tolist() == [500] * 10 and torch.bincount(labels[5000:]).tolist() == [100] * 10
    assert len({digit.numpy().tobytes() for digit in digits}) == 6000


def test_a_seed_gives_the_same_network_whatever_others_do():
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda seed: train_small(TINY, steps=8, seed=seed), (5, 6)))
    for seed, (model, history) in zip((5, 6), both, strict=True):
        again, its_history = train_small(TINY, steps=8, seed=seed)
        assert torch.equal(weights(model), weights(again)) and history.loss == its_history.loss
    assert torch.get_num_threads() == threads and torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(weights(both[0][0]), weights(both[1][0]))


def test_a_loop_goes_on_at_a_step():
    layer = torch.nn.Linear(1, 1)
    optimiser = torch.optim.SGD(layer.parameters(), lr=8.0)
    done = updates(layer, optimiser, [(1,)] * 3, lambda x: (layer.weight.sum(), x), lambda step: step / 8, first_step=2)
    assert [optimiser.param_groups[0]["lr"] for _ in done] == [2, 3, 4]


def test_a_run_goes_on_from_a_network(trained):
    started = []
    train_small(TINY, start=trained[0], steps=2, on_step=lambda model, history: started.append(history.loss[0]))
    assert started[0] < 0.8 * trained[1].loss[0]
    with pytest.raises(InputError, match="another shape"):
        train_small(start=trained[0], steps=2)


def test_seconds_become_steps(monkeypatch):
    ticks = iter(range(10_000))
    clock = SimpleNamespace(perf_counter=lambda: next(ticks) * 0.1)  # a tenth of a second for each step
    monkeypatch.setattr(small, "time", clock)
    assert train_small(TINY, seconds=5)[1].steps == round(10 * (0.95 * 5 - 11 * 0.1)), "without eleven measurements"


def test_a_run_that_is_stopped_keeps_what_it_learned():
    model, history = train_small(TINY, steps=50, on_step=lambda _, history: len(history.loss) == 7)
    assert len(history.loss) == 7 and [step for step, _ in history.accuracy] == [5, 7] and not model.training
    assert all(p.grad is None and not p.requires_grad for p in model.parameters())
    assert not torch.equal(weights(model), weights(random_network(TINY, 0)))


def test_a_measurement_can_be_stopped():
    batches = []

    def stop():
        batches.append(1)
        if len(batches) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_small(TINY, steps=10, on_batch=stop)


def test_a_loss_that_is_no_number_ends_with_a_sentence(monkeypatch):
    not_a_number = SimpleNamespace(pad=small.F.pad, cross_entropy=lambda logits, classes: logits.sum() * float("nan"))
    monkeypatch.setattr(small, "F", not_a_number)
    with pytest.raises(InputError, match="lower learning rate"):
        train_small(TINY, steps=3)


def test_what_is_raised_after_a_step_ends_it():
    seen = []

    def stop(_, history):
        seen.append(len(history.loss))
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_small(TINY, steps=50, on_step=stop)
    assert seen == [1, 2, 3]


def test_digits_are_moved_by_up_to_two_pixels():
    digit = torch.zeros(200, 1, 28, 28)
    digit[:, 0, 10, 12] = 1
    places = shift(digit, torch.Generator().manual_seed(0))[:, 0].flatten(1).argmax(1)
    rows, cols = places // 28, places % 28
    assert {*rows.tolist()} == {8, 9, 10, 11, 12} and {*cols.tolist()} == {10, 11, 12, 13, 14}
    assert len({*places.tolist()}) == 25


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"seconds": 0}, "seconds must be"), ({"seconds": "x"}, "seconds must be"), ({"seconds": True}, "seconds"),
        ({"steps": 0}, "steps"), ({"steps": 1.5}, "steps"), ({"steps": 10**9}, "steps"), ({"seed": -1}, "seed"),
        ({"learning_rate": float("nan")}, "learning_rate"), ({"num_digits": 6000}, "num_digits"),
        ({"shuffle_labels": 1}, "shuffle_labels"), ({"magic": 1}, "choose some of seconds"),
    ],
)  # fmt: skip
def test_a_choice_out_of_range_is_refused(choices, words):
    with pytest.raises(InputError, match=words):
        train_small(TINY, **choices)


def test_only_networks_of_digits_are_trained():
    for config in (ViTConfig(), "x"):
        with pytest.raises(InputError, match="image_size=28"):
            train_small(config, steps=1)


@pytest.mark.parametrize("positions", ["learned", "sincos", "none"])
def test_a_network_may_have_no_positions(positions):
    config = ViTConfig(**TINY.to_dict() | {"pos_embed": positions})
    model = random_network(config, 0).eval()
    images = torch.randn(1, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    turned = images.unflatten(2, (4, 7)).flip(2).flatten(2, 3)  # rows of patches in another order
    with torch.no_grad():
        torch.nn.init.normal_(model.pos_embed) if positions == "learned" else None
        is_same = torch.allclose(model(images), model(turned), atol=1e-5)
    assert is_same == (positions == "none")
    assert sum(p.numel() for p in model.parameters()) == config.num_parameters


def test_a_folder_holds_the_network(trained, tmp_path):
    digit = np.zeros((28, 28), np.uint8)
    digit[4:24, 12:15] = 255
    save_digits(folder := tmp_path / "mine", *trained)
    ex = vit_demo.explore(digit, folder)
    with torch.no_grad():
        expected = trained[0](ex.pixels)[0]
    np.testing.assert_allclose(ex.logits, expected, atol=1e-6)
    assert ex.patch_size == 7 and ex.labels == tuple("0123456789") and ex.relevance().shape == (4, 4)
    broken = (folder / "model.safetensors").read_bytes().replace(b'"depth\\": 1', b'"depth\\": 0')
    (folder / "model.safetensors").write_bytes(broken.replace(b'\\"depth\\": 1', b'\\"depth\\": 0'))
    with pytest.raises(InputError):
        vit_demo.explore(digit, folder)
    (tmp_path / "taken" / "model.safetensors").mkdir(parents=True)
    with pytest.raises(InputError, match="cannot be written"):
        save_digits(tmp_path / "taken", *trained)


def test_the_command_trains_and_explains(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(small, "DEFAULT_CONFIG", TINY)
    for command in (["train"], ["train", "--quick"]):
        assert main([*command, "--seconds", "0.2", "--out", str(tmp_path)]) == 0
        out = capsys.readouterr().out
        assert "% of 1,000 other digits after" in out and f"--preset {tmp_path / 'quick'}" in out
    assert main(["train", "--seconds", "0"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
