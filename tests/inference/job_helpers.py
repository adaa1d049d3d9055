"""What tests of jobs share: jobs that are held, and waiting."""

import threading
import time

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


def until(condition):
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
