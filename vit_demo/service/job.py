"""A job: work for one or several requests, its progress, and its cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Callable, Generator, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from vit_demo.errors import InputError
from vit_demo.methods import Progress
from vit_demo.service.job_limits import GRACE, JOB_SECONDS, QUICK_STUCK_SECONDS, STUCK_SECONDS, USUAL_SECONDS

T = TypeVar("T")


class Cancelled(BaseException):
    """The job stopped because nobody waits for it any more. No error: who answers for those of others lets it pass."""


class Turn(NamedTuple):
    """A share of work: its worker pool, the memory that it needs, and how long it will take."""

    pool: str
    nbytes: int = 0
    seconds: float = USUAL_SECONDS


WITHIN = Turn("")  # the turn of a job that runs within another

Work = Callable[[], T | Generator[Turn, None, T]]
"""What a job does. Long work is a generator: where it yields a turn, others get theirs before it goes on there."""


class Job(Generic[T]):
    """Work that several requests, its ``owners``, may wait for; equal keys mean equal work.

    Its progress is ``done`` of ``total``, which is 0 while unknown.
    """

    def __init__(self, key: Hashable, work: Work[T], turn: Turn = WITHIN, parent: Job[Any] | None = None) -> None:
        self.key = key
        self.turn = turn
        self.done = self.total = 0
        self.tried: list[int] = []  # patches that a search has just tried to do without
        self.fewest: list[int] = []  # the fewest that it has found so far
        self._work: Work[T] | Callable[[], Turn] | None = work
        self._parent = parent
        self._context: Context = copy_context()
        self._future: Future[T] = Future()
        self._future.set_running_or_notify_cancel()  # a waiter that leaves must not cancel it for the others
        self._lock = threading.Lock()
        self.owners: set[str] = set()
        self._claimed = False
        self._cancelled: InputError | type[Cancelled] | None = None
        self._started_at = float("inf")
        self.submitted_at = time.monotonic()
        self._waiters = 0
        self._wanted_at = time.monotonic() if parent is None else float("-inf")

    @property
    def is_done(self) -> bool:
        """Whether there is a result, or an error."""
        return self._future.done()

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for the result, or did within the last ``GRACE`` seconds."""
        if self._cancelled:
            return False
        recently = time.monotonic() - self._wanted_at < GRACE
        return self._waiters > 0 or recently or (self._parent is not None and self._parent.is_wanted)

    @property
    def is_stuck(self) -> bool:
        """Whether it goes on long after it, or its turn, was to end."""
        return self.seconds_so_far > (QUICK_STUCK_SECONDS if self.turn.pool == "digits" else STUCK_SECONDS)

    @property
    def seconds_so_far(self) -> float:
        """Seconds that it, or its turn, has run; negative while it waits."""
        return time.monotonic() - self._started_at

    def report(self, done: int, total: int) -> None:
        """Records the progress; raises ``Cancelled`` if nobody waits for the job any more."""
        if not self.is_wanted:
            raise self._cancelled or Cancelled
        if self.seconds_so_far > JOB_SECONDS:
            raise InputError(
                "This took more than {0} seconds: choose a smaller model or picture.", f"{JOB_SECONDS:.0f}"
            )
        self.done, self.total = done, total
        if self._parent is not None and self._parent.is_wanted:
            self._parent.report(done, total)

    def cancel(self, reason: InputError | type[Cancelled] = Cancelled) -> None:
        """Stops the job at its next report, as if nobody waited for it; those who do get the reason, if given."""
        self._cancelled = reason

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Keeps the job going while the block runs."""
        with self._lock:
            self._waiters += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiters -= 1
            self._wanted_at = time.monotonic()

    def poll(self, seconds: float) -> bool:
        """Waits some seconds for the result and keeps the job going for ``GRACE`` more; whether it is done."""
        with self.waiting(), suppress(TimeoutError):
            self._future.exception(seconds)
        return self.is_done

    async def poll_async(self, seconds: float) -> bool:
        """As ``poll``, awaited without occupying a thread."""
        future = asyncio.wrap_future(self._future)
        # The exception is retrieved here, so that asyncio does not warn about it.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        with self.waiting():
            await asyncio.wait([future], timeout=seconds)
        return self.is_done

    def result(self) -> T:
        """The result, waited for, or the error that the work raised."""
        with self.waiting():
            return self._future.result()

    async def result_async(self) -> T:
        """The result, awaited without occupying a thread; raises what ``result`` raises."""
        with self.waiting():
            return await asyncio.wrap_future(self._future)

    def claim(self) -> bool:
        """Whether the caller may run this job: True for the first caller only."""
        with self._lock:
            first, self._claimed = not self._claimed, True
        return first

    def execute(self) -> bool:
        """Runs the work in this thread, up to a turn that is to be claimed; whether it is over, and its result kept."""
        work, self._work = self._work, None
        self._started_at = time.monotonic()
        assert work is not None, "only the claimer runs a job"
        self._context.run(current_job.set, self)
        try:
            if not self.is_wanted:
                raise self._cancelled or Cancelled
            found: list[Any] = [
                self._context.run(work)
            ]  # in a list, so that no variable keeps what others have and let go
            if isinstance(found[0], Generator):
                work = partial(next, found[0])
                found = [self._context.run(work)]
            if isinstance(found[0], Turn):
                self._work, self.turn = work, found[0]
                self._started_at, self.submitted_at = float("inf"), time.monotonic()
                self._claimed = False
                return False
            self._future.set_result(found.pop())
        except StopIteration as end:
            self._future.set_result(end.value)
        except BaseException as error:
            _release_frames(error)
            self._future.set_exception(error)
        finally:
            del work
        return True


def _release_frames(error: BaseException | None) -> None:
    """Empties the frames of an error and of its causes, which would keep variables such as pictures in memory.

    An ``InputError`` needs no traceback, and loses its frames, because even an empty one keeps its function's closure.
    """
    is_expected = isinstance(error, InputError)
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        if is_expected:
            error.__traceback__ = None
        error = error.__cause__ or error.__context__


owner: ContextVar[str] = ContextVar("who asks for jobs here; empty for this process itself", default="")

current_job: ContextVar[Job[Any] | None] = ContextVar("the job that this thread runs", default=None)


def report(done: int, total: int) -> None:
    """Reports progress to the job of this thread, if any; raises ``Cancelled`` if nobody waits for it any more."""
    job = current_job.get()
    if job is not None:
        job.report(done, total)


def report_to(progress: Progress | None, done: int, total: int) -> None:
    """Reports progress to this thread's job and, if given, to a caller's function."""
    report(done, total)
    if progress is not None:
        progress(done, total)
