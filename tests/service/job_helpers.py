"""A job that is held until its test lets it go."""

import threading

from ..asynchronous import PATIENCE


def held(runner, key, pool, nbytes=0):
    """A job that runs until it is let go."""
    started, go_on = threading.Event(), threading.Event()

    def work():
        started.set()
        assert go_on.wait(PATIENCE)
        return key

    job = runner.submit(key, work, pool, nbytes)
    assert started.wait(PATIENCE)
    return job, go_on
