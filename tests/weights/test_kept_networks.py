"""Networks that people train themselves, in memory under a name of their own."""

import random
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from vit_demo.errors import PresetError
from vit_demo.model import ViT
from vit_demo.model.config import MNIST_FROM_SCRATCH
from vit_demo.training.small import DEFAULT_CONFIG, random_network
from vit_demo.weights import PRESETS, find_preset, kept_networks
from vit_demo.weights.checkpoints import load_model
from vit_demo.weights.kept_networks import keep, keep_before
from vit_demo.weights.taught_heads import taught_preset


@pytest.mark.parametrize(("is_before", "title"), [(False, "Yours (88 %)"), (True, "Yours before training (88 %)")])
def test_a_network_in_memory_is_a_preset(is_before, title):
    torch.manual_seed(0)
    model, images = ViT(MNIST_FROM_SCRATCH).eval(), torch.rand(1, 1, 28, 28)
    name = keep_before(lambda: model, model.config, 0.876) if is_before else keep(model, 0.876)
    preset = find_preset(name)
    assert preset.title == title and preset.labels == tuple("0123456789")
    assert preset.config == MNIST_FROM_SCRATCH and preset.patch_sizes == (4,)
    assert torch.equal(load_model(preset)(images), model(images))


def test_a_class_behind_one_address_keeps_thirty_networks(monkeypatch):
    kept, network = networks_of(1 << 31, monkeypatch), random_network(DEFAULT_CONFIG, 0)
    names = [keep(network, 0.5, "a class") for _ in range(30)]
    assert all(kept.get(name) for name in names)


@pytest.mark.parametrize("memory", [1 << 31, 1 << 35])
def test_an_address_drives_out_only_its_own_networks(memory, monkeypatch):
    kept, network = networks_of(memory, monkeypatch), random_network(DEFAULT_CONFIG, 0)
    mine = [keep(network, 0.5, "me") for _ in range(3)]
    for n in range(5):
        theirs = [keep(network, 0.5, f"address {n}") for _ in range(400)]
        assert not kept.get(theirs[0]) and kept.get(theirs[-1])
    assert all(kept.get(name) for name in mine)
    assert sum(nbytes for _, _, nbytes, _ in kept._kept.values()) <= kept.max_bytes


def networks_of(memory, monkeypatch):
    """The networks of a server with so much memory."""
    found = kept_networks.Shares(*kept_networks.shares_of(memory))
    monkeypatch.setattr(kept_networks, "networks", found)
    return found


def test_a_network_before_its_training_takes_no_memory_and_an_hour_is_an_hour(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(kept_networks, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    kept = networks_of(1 << 31, monkeypatch)
    name = keep_before(lambda: random_network(DEFAULT_CONFIG, 7), DEFAULT_CONFIG, 0.1)
    assert kept._kept[name][2] < 4000
    clock[0] = 3599.0
    assert kept.get(name)
    clock[0] = 3601.0
    assert not kept.get(name) and not kept._kept


class Slow:
    """What ``Shares`` promises, written down as simply as possible: everything is looked through each time."""

    def __init__(self, most: int, of_one: int) -> None:
        self.most, self.of_one, self.kept, self.owners = most, of_one, list[tuple[str, int, str, int, float]](), []

    def put(self, name: str, value: int, owner: str, nbytes: int, now: float) -> None:
        self.keep_only(lambda one: now - one[4] <= kept_networks.KEPT_SECONDS)
        owner = next((one[2] for one in self.kept if one[0] == name), owner)
        self.keep_only(lambda one: one[0] != name)
        self.kept.append((name, value, owner, nbytes, now))
        self.owners += [owner] * (owner not in self.owners)  # of two who hold as much, the first makes room
        while True:
            held = {who: sum(one[3] for one in self.kept if one[2] == who) for who in self.owners}
            if held.get(owner, 0) > self.of_one:
                loser = owner
            elif sum(held.values()) > self.most:
                loser = max(self.owners, key=held.__getitem__)
            else:
                return
            oldest = next(one for one in self.kept if one[2] == loser)
            self.keep_only(lambda one, oldest=oldest: one != oldest)

    def keep_only(self, is_kept) -> None:
        self.kept = [one for one in self.kept if is_kept(one)]
        self.owners = [who for who in self.owners if any(one[2] == who for one in self.kept)]


@pytest.mark.parametrize("seed", range(20))
def test_shares_keep_what_a_plain_list_would(seed, monkeypatch):
    rng, clock = random.Random(seed), [0.0]
    monkeypatch.setattr(kept_networks, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    fast, slow = kept_networks.Shares[int](1000, 400), Slow(1000, 400)
    for number in range(600):
        clock[0] += rng.choice((0.0, 1.0, 30.0, 900.0) if rng.random() < 0.1 else (0.0, 1.0))
        sent = f"n{rng.randrange(40)}", number, f"o{rng.randrange(4)}", rng.randrange(1, 450)
        fast.put(*sent)
        slow.put(*sent, clock[0])
        assert [(name, *rest) for name, rest in fast._kept.items()] == slow.kept
        assert fast._total == sum(one[3] for one in slow.kept) == fast._held.total()
        assert fast._names.keys() == set(slow.owners) == fast._held.keys()
    clock[0] += 3601.0
    assert fast.get("n1") is None and not fast._kept and not fast._names and not fast._held and fast._total == 0


def test_a_value_stays_with_its_owner_and_is_the_newest_when_another_opens_it():
    shares = kept_networks.Shares[str](1000, 30)
    shares.put("link", "of the teacher", "teacher", 10)
    shares.put("other", "of the teacher", "teacher", 10)
    shares.put("link", "opened", "pupil", 10)
    for number in range(9):
        shares.put(f"own {number}", "of the pupil", "pupil", 10)
    assert shares.get("link") and shares.get("other"), "what a pupil makes drives out nothing of the teacher's"
    for number in range(2):
        shares.put(f"new {number}", "of the teacher", "teacher", 10)
    assert shares.get("link") and not shares.get("other"), "who opens it makes it the newest"


def test_putting_takes_as_long_however_many_are_kept():
    def seconds(count: int) -> float:
        shares = kept_networks.Shares[int](10 * count, 10 * count)
        for number in range(count):
            shares.put(f"{number}", number, f"owner {number % 50}", 10)
        started = time.thread_time()
        for number in range(2000):
            shares.put(f"new {number}", number, f"owner {number % 50}", 10)
        return time.thread_time() - started

    assert min(seconds(100_000) for _ in range(3)) < 10 * min(seconds(1000) for _ in range(3))


@pytest.mark.parametrize(
    ("count", "length", "letter"), [(2, 1, "a"), (10, 40, "a"), (10, 40, "é"), (10, 40, "\U0001f600")]
)
def test_a_taught_network_takes_what_it_counts(count, length, letter, monkeypatch):
    kept, base = networks_of(1 << 40, monkeypatch), PRESETS["digits-tiny"]

    def keep_one(number: int) -> None:
        labels = tuple(chr(0x4E00 + number) + chr(65 + index) + letter * (length - 2) for index in range(count))
        head = np.full((count, 65), number, np.float32)
        kept_networks.keep_taught(taught_preset(base, 7, labels, head), "someone")

    keep_one(0)
    tracemalloc.start()
    try:
        for number in range(1, 501):
            keep_one(number)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(kept._kept) == 501 and 0.5 * kept._total < taken < 1.05 * kept._total


def test_a_name_whose_network_is_gone_gets_a_sentence():
    with pytest.raises(PresetError, match="gone"):
        find_preset("yours-" + "a" * 22)
