"""Drawings that wait for the same network are one pass, and each answer is that of the drawing alone."""

import threading
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
import torch

from vit_demo.errors import CheckpointError, EmptyDrawingError, ImageError
from vit_demo.inference.inputs import ModelInput
from vit_demo.service import together
from vit_demo.service.engine import Engine
from vit_demo.service.job import Cancelled, report
from vit_demo.service.source import Source
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.weights import PRESETS

from ..asynchronous import PATIENCE, until

PRESET = PRESETS["digits-tiny"]


class Waiting:
    """Drawings that wait behind a job which the test ends, and the size of every pass."""

    def __init__(self, monkeypatch):
        self.engine, self.sizes, self._go_on = Engine("cpu"), [], threading.Event()
        plain = self.engine._execute

        def execute(preset, patch_size, function, arguments, options):
            self.sizes.append(len(arguments[0]))
            return plain(preset, patch_size, function, arguments, options)

        monkeypatch.setattr(self.engine, "_execute", execute)
        self.engine.warm_up("digits-tiny").result()
        self.sizes.clear()
        self.hold = lambda: self._go_on.wait(PATIENCE)

    def submit(self, read, patch_size=7, pool="digits"):
        source = Source(object(), read)
        drawing = self.engine.drawing(source, PRESET, patch_size, pool)

        def work():
            return self.engine.explore_source(source, PRESET, patch_size, drawing=drawing)

        return self.engine.jobs.submit(object(), work, pool)

    def run(self, *reads, **options):
        """Lets both threads of the pool wait until all drawings do; gives their jobs, which are done."""
        held = [self.engine.jobs.submit(object(), self.hold, "digits") for _ in range(2)]
        until(lambda: self.engine.jobs.queues["digits"].count() == 0)
        jobs = [self.submit(read, **options) for read in reads]
        self._go_on.set()
        for job in [*held, *jobs]:
            until(lambda job=job: job.is_done)
        return jobs

    def close(self):
        self._go_on.set()
        self.engine.jobs.close()


@pytest.fixture
def waiting(monkeypatch):
    waiting = Waiting(monkeypatch)
    yield waiting
    waiting.close()


def reads(count):
    return [lambda digit=digit: example_picture(digit % 10).rotate(digit, fillcolor=255) for digit in range(count)]


def test_what_waits_is_one_pass_of_eight_at_most_and_equals_each_drawing_alone(waiting):
    jobs = waiting.run(*reads(11))
    assert sorted(waiting.sizes) == [3, 8]
    for job, read in zip(jobs, reads(11), strict=True):
        found, alone = job.result(), Engine("cpu").explore(read(), "digits-tiny", 7)
        np.testing.assert_allclose(found.probabilities, alone.probabilities, atol=1e-5)
        np.testing.assert_allclose(found.attention_maps(), alone.attention_maps(), atol=1e-5)
        torch.testing.assert_close(found.trace.early, alone.trace.early, atol=1e-4, rtol=1e-4)
        assert found.geometry == alone.geometry and found.seconds > 0


def test_one_that_comes_alone_waits_for_no_other(waiting):
    assert waiting.submit(reads(1)[0]).result().top(1)[0][0] == "0"
    assert waiting.sizes == [1]


@pytest.mark.parametrize(
    "error", [EmptyDrawingError("Nothing is drawn."), ImageError("Not a drawing."), KeyError("bug")]
)
def test_one_that_cannot_be_read_fails_alone(waiting, error):
    def fail():
        raise error

    one, two, bad, three = reads(3)[0], reads(3)[1], fail, reads(3)[2]
    jobs = waiting.run(one, bad, two, three)
    assert waiting.sizes == [3]
    with pytest.raises(type(error)):
        jobs[1].result()
    assert [job.result().top(1)[0][0] for job in (jobs[0], *jobs[2:])] == ["0", "1", "2"]


def test_where_the_pass_fails_each_runs_alone_and_one_that_fails_again_fails_alone(waiting, monkeypatch):
    plain = waiting.engine._execute

    def execute(preset, patch_size, function, arguments, options):
        found = plain(preset, patch_size, function, arguments, options)
        if (arguments[0] < -100).any():
            raise CheckpointError("The model's output is not a number.")
        return found

    monkeypatch.setattr(waiting.engine, "_execute", execute)
    of = ModelInput.of

    def spoilt(picture, *arguments):
        given = of(picture, *arguments)
        if picture.getpixel((0, 0)) == 254:
            given.pixels[:] = -1000
        return given

    monkeypatch.setattr(ModelInput, "of", spoilt)
    bad = example_picture(5)
    bad.putpixel((0, 0), 254)
    jobs = waiting.run(*reads(2), lambda: bad)
    assert sorted(waiting.sizes) == [1, 1, 1, 3]
    assert [job.result().top(1)[0][0] for job in jobs[:2]] == ["0", "1"]
    with pytest.raises(CheckpointError):
        jobs[2].result()


def test_where_nobody_wants_the_first_any_more_the_others_run_alone(waiting, monkeypatch):
    plain = waiting.engine._execute

    def execute(preset, patch_size, function, arguments, options):
        if len(arguments[0]) > 1:
            jobs[0].cancel()
            report(0, 0)  # as where the network is still being loaded
        return plain(preset, patch_size, function, arguments, options)

    monkeypatch.setattr(waiting.engine, "_execute", execute)
    jobs: list[Any] = []
    held = [waiting.engine.jobs.submit(object(), waiting.hold, "digits") for _ in range(2)]
    until(lambda: waiting.engine.jobs.queues["digits"].count() == 0)
    jobs += [waiting.submit(read) for read in reads(3)]
    waiting._go_on.set()
    until(lambda: all(job.is_done for job in (*held, *jobs)))
    with pytest.raises(Cancelled):
        jobs[0].result()
    assert [job.result().top(1)[0][0] for job in jobs[1:]] == ["1", "2"]


def test_patch_sizes_and_pools_are_passes_of_their_own(waiting):
    held = [waiting.engine.jobs.submit(object(), waiting.hold, pool) for pool in ("digits", "live digits") * 2]
    until(lambda: not sum(waiting.engine.jobs.queues[pool].count() for pool in ("digits", "live digits")))
    first, second = reads(2)
    jobs = [
        waiting.submit(read, size, pool)
        for read in (first, second)
        for size in (4, 7)
        for pool in ("digits", "live digits")
    ]
    waiting._go_on.set()
    grids = [job.result().grid for job in jobs]
    assert waiting.sizes == [2, 2, 2, 2] and grids == [(7, 7), (7, 7), (4, 4), (4, 4)] * 2
    assert all(job.result() for job in held)


def test_a_drawing_that_nobody_wants_any_more_is_in_no_pass(waiting):
    held = [waiting.engine.jobs.submit(object(), waiting.hold, "digits") for _ in range(2)]
    until(lambda: waiting.engine.jobs.queues["digits"].count() == 0)
    jobs = [waiting.submit(read) for read in reads(3)]
    waiting.engine.jobs.drop(jobs[1])
    assert jobs[1].is_done
    waiting._go_on.set()
    assert [job.result().top(1)[0][0] for job in (jobs[0], jobs[2])] == ["0", "2"]
    assert waiting.sizes == [2] and held and not together._waiting


def test_on_a_cluster_the_replicas_run_drawings_together():
    class Elsewhere:
        pools, device = {}, "elsewhere"

    source = Source("digit", lambda: example_picture(3))
    assert Engine("cpu", Elsewhere()).drawing(source, PRESET, 7, "digits") is None  # type: ignore[arg-type]
    assert isinstance(Engine("cpu").drawing(source, PRESET, 7, "digits")._found, Future)  # type: ignore[union-attr]
    photo = Source("photo", source.read, is_decoded=lambda: True)
    assert Engine("cpu").drawing(photo, PRESET, 7, "photos") is None, "a file that must be decoded first"
