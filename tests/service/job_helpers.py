"""A job that is held until its test lets it go."""

import threading

WAIT = 10  # seconds that no test comes near


def held(runner, key, pool, nbytes=0):
    """A job that runs until it is let go."""
    started, go_on = threading.Event(), threading.Event()

    def work():
        started.set()
        assert go_on.wait(WAIT)
        return key

    job = runner.submit(key, work, pool, nbytes)
    assert started.wait(WAIT)
    return job, go_on
