"""A model that a visitor names: fetched by some workers, proved by others, with memory that counts, while he waits."""

import threading

import pytest

from vit_demo.errors import InputError
from vit_demo.service import engine as module
from vit_demo.service import jobs
from vit_demo.service.engine import Engine
from vit_demo.service.job import Cancelled, owner
from vit_demo.weights import costs
from vit_demo.weights.hub import repository

from ..asynchronous import PATIENCE, until

NAME = "someone/vit"


@pytest.fixture
def named(hub, published):
    """A repository with a small model."""
    hub.repositories[NAME] = published.files
    return NAME


@pytest.fixture
def places(monkeypatch):
    """Which threads fetched and proved."""
    found = []
    for name in ("fetch", "adapt"):
        real = getattr(repository, name)
        monkeypatch.setattr(
            repository,
            name,
            lambda *given, name=name, real=real, **options: (
                found.append((name, threading.current_thread().name.rpartition("-")[0])),
                real(*given, **options),
            )[1],
        )
    return found


def prepare(engine, name, trusted=False):
    token = owner.set("a visitor")
    try:
        return engine.prepare(name, lambda *_: None, trusted=trusted)
    finally:
        owner.reset(token)


def test_fetching_and_proving_have_workers_of_their_own(named, places):
    engine = Engine("cpu")
    preset = prepare(engine, named).result()
    assert preset.structure is not None and preset.labels
    seen = set(places)
    assert ("adapt", "custom proofs") in seen and ("fetch", "custom downloads") in seen
    assert ("adapt", "custom downloads") not in seen
    places.clear()
    assert prepare(engine, named).result() == preset and ("adapt", "custom proofs") not in places, "proved once"
    engine.jobs.close()


def test_of_the_operators_models_nothing_is_done_where_visitors_are(named, places):
    engine = Engine("cpu")
    engine.prepare(named, lambda *_: None).result()
    assert {pool for _, pool in places} == {"downloads"}
    engine.jobs.close()


def test_a_proof_counts_with_its_memory_before_it_begins(named, places, monkeypatch):
    engine, held = Engine("cpu"), []
    reserve = type(engine.jobs._memory[True]).reserve
    monkeypatch.setattr(jobs, "SMALL_JOB", 0)
    monkeypatch.setattr(
        engine.jobs._memory[True],
        "reserve",
        lambda n, who: (held.append(n), reserve(engine.jobs._memory[True], n, who))[1],
    )
    preset = prepare(engine, named).result()
    least = costs.proof(preset.config, preset.default_patch_size).nbytes
    assert held == [least + 8 * preset.num_parameters], "of its passes, and its weights twice"
    repository._repositories.clear()
    places.clear()
    monkeypatch.setattr(jobs, "MEMORY_OF_ONE", least)
    with pytest.raises(InputError, match="too much memory"):
        prepare(Engine("cpu"), named).result()
    assert all(what == "fetch" for what, _ in places)
    engine.jobs.close()


def test_a_proof_ends_with_its_visitor(named, monkeypatch):
    engine, begun, go_on, calls = Engine("cpu"), threading.Event(), threading.Event(), []
    report = module.report

    def noted(done, total):
        if (done, total) == (0, 0):
            calls.append(1)
            if len(calls) == 3:
                begun.set()
                go_on.wait(PATIENCE)
        report(done, total)

    monkeypatch.setattr(module, "report", noted)
    job = prepare(engine, named)
    assert begun.wait(PATIENCE)
    monkeypatch.setattr("vit_demo.service.job.GRACE", 0.0)
    go_on.set()
    until(lambda: job.is_done)
    with pytest.raises(Cancelled):
        job.result()
    assert len(calls) == 3, "at the next module"
    monkeypatch.undo()
    engine.jobs.close()
