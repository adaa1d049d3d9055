"""How long a request waits for a job, such as a download, before it returns the progress."""

from typing import TypeVar

from vit_demo.service.job import Job
from vit_demo.web.catalog import visitor_presets
from vit_demo.weights import Preset

T = TypeVar("T")

POLL_SECONDS = 0.4  # how long a call waits for the result before it returns the progress

POLLS_WITHOUT_PROGRESS = 3
"""How often a call waits for a job without progress, such as a quick one in the queue.

Waiting costs a busy server less than another request. But a browser has only six connections, which requests for an
earlier picture occupy until they return.
"""


class Unfinished(Exception):
    """A job is still running; the arguments are ``done``, ``total``, ``tried`` and ``fewest``."""


async def wait_for(job: Job[T]) -> T:
    """Waits for the result of a job as long as a call may; then raises ``Unfinished``."""
    for _ in range(POLLS_WITHOUT_PROGRESS):
        if await job.poll_async(POLL_SECONDS):
            return job.result()
        if job.total:
            break
    raise Unfinished(job.done, job.total, job.tried, job.fewest)


async def find_preset(name: str) -> Preset:
    """A preset for a visitor; a download takes several requests."""
    preset = visitor_presets.ready(name)
    return await wait_for(visitor_presets.prepare(name)) if preset is None else preset
