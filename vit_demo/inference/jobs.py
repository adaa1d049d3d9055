"""Every forward pass, model load and download runs as a job: once for equal requests, in a lane, within limits.

A lane has its own worker threads and queue, so that work of one kind never waits for work of another: digits do not
wait for photos, nor a quick map for a slow one. Lanes of slow work run at a lower priority of the operating system,
which leaves the processor to the quick ones.

A job that needs another (a map needs its forward pass) calls ``JobRunner.run``: the inner job then runs in the same
thread, unless it is running elsewhere already and only has to be awaited.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, Generic, TypeVar

import torch

from vit_demo.errors import BusyError
from vit_demo.inference.byte_semaphore import ByteSemaphore
from vit_demo.inference.limits import GRACE, LANES, MEMORY, Lane

T = TypeVar("T")


class Cancelled(Exception):
    """The job stopped because nobody waits for it any more."""


class Job(Generic[T]):
    """One piece of work that several requests may wait for.

    Attributes:
        key: Equal keys mean equal work.
        nbytes: Memory that it needs while it runs, roughly.
        done: How much of the work is done.
        total: The whole amount; 0 if it is not known.
    """

    def __init__(self, key: Hashable, work: Callable[[], T], nbytes: int = 0, parent: Job[Any] | None = None) -> None:
        self.key = key
        self.nbytes = nbytes
        self.done = self.total = 0
        self._work: Callable[[], T] | None = work
        self._parent = parent
        self._context: Context = copy_context()
        self._future: Future[T] = Future()
        self._future.set_running_or_notify_cancel()  # a waiter that leaves must not cancel it for the others
        self._lock = threading.Lock()
        self._claimed = self._cancelled = False
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

    def report(self, done: int, total: int) -> None:
        """Records the progress.

        Raises:
            Cancelled: If nobody waits for the job any more.
        """
        if not self.is_wanted:
            raise Cancelled
        self.done, self.total = done, total
        if self._parent is not None and self._parent.is_wanted:
            self._parent.report(done, total)

    def cancel(self) -> None:
        """Stops the job at its next report, as if nobody waited for it."""
        self._cancelled = True

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
        """The result, waited for.

        Raises:
            Exception: What the work raised.
        """
        with self.waiting():
            return self._future.result()

    async def result_async(self) -> T:
        """The result, awaited without occupying a thread; raises what ``result`` raises."""
        with self.waiting():
            return await asyncio.wrap_future(self._future)

    def claim(self) -> bool:
        """Whether the caller is the one to run this job; true once."""
        with self._lock:
            first, self._claimed = not self._claimed, True
        return first

    def execute(self) -> None:
        """Runs the work in this thread and keeps its result, or its error."""
        work, self._work = self._work, None
        assert work is not None, "only the claimer runs a job"
        self._context.run(_current.set, self)
        try:
            if not self.is_wanted:
                raise Cancelled
            self._future.set_result(self._context.run(work))
        except BaseException as error:
            self._future.set_exception(error)


_current: ContextVar[Job[Any] | None] = ContextVar("the job that this thread runs", default=None)


def report(done: int, total: int) -> None:
    """Reports progress to the job that this thread runs; does nothing outside of a job.

    Raises:
        Cancelled: If nobody waits for the job any more.
    """
    job = _current.get()
    if job is not None:
        job.report(done, total)


class JobRunner:
    """Runs jobs in lanes; safe to call from any thread.

    Args:
        lanes: By name.
        nbytes: Memory that running jobs may need together, by the estimates with which they are submitted.
    """

    def __init__(self, lanes: Mapping[str, Lane] = LANES, nbytes: int = MEMORY) -> None:
        self._lanes = dict(lanes)
        self._memory = ByteSemaphore(nbytes)
        self._queues: dict[str, queue.SimpleQueue[Job[Any] | None]] = {name: queue.SimpleQueue() for name in lanes}
        self._waiting = dict.fromkeys(lanes, 0)
        self._active: dict[Hashable, Job[Any]] = {}
        self._lock = threading.Lock()
        self._started = self._closed = False

    @property
    def num_active(self) -> int:
        """Jobs that wait or run."""
        return len(self._active)

    def submit(self, key: Hashable, work: Callable[[], T], lane: str, nbytes: int = 0) -> Job[T]:
        """Starts a job, or joins the one with the same key that is queued or running.

        Args:
            key: Equal keys mean equal work; None for work that is equal to no other.
            work: Takes nothing; may call ``report``.
            lane: Name of a lane.
            nbytes: Estimated memory that it needs while it runs.

        Raises:
            BusyError: If too many jobs are queued in the lane, or the runner is closed.
        """
        key = object() if key is None else key
        with self._lock:
            job = self._active.get(key)
            if job is not None and job.is_wanted:
                return job
            if self._closed:
                raise BusyError("The server is shutting down: try again in a moment.")
            if self._waiting[lane] >= self._lanes[lane].waiting:
                raise BusyError("The server is busy: try again in a moment.")
            if not self._started:
                self._start_workers()
            job = self._active[key] = Job(key, work, nbytes)
            self._waiting[lane] += 1
            self._queues[lane].put(job)
        return job

    def run(self, key: Hashable, work: Callable[[], T], lane: str, nbytes: int = 0) -> T:
        """Waits for the result of a job; called within another job, it runs in the same thread.

        Raises:
            BusyError: As in ``submit``.
            Exception: What the work raised.
        """
        outer = _current.get()
        while outer is None:
            with suppress(Cancelled):  # it was cancelled just before it was joined
                return self.submit(key, work, lane, nbytes).result()
        if key is None:
            return work()
        while True:
            with self._lock:
                job = self._active.get(key)
                if job is None:
                    job = self._active[key] = Job(key, work, nbytes, parent=outer)
            if job.claim():
                self._finish(job)
                return job.result()
            while not job.poll(0.2):
                outer.report(job.done, job.total)
            with suppress(Cancelled):
                return job.result()

    async def run_async(self, key: Hashable, work: Callable[[], T], lane: str, nbytes: int = 0) -> T:
        """As ``run``, awaited without occupying a thread; not for use within a job."""
        while True:
            with suppress(Cancelled):
                return await self.submit(key, work, lane, nbytes).result_async()

    def close(self, seconds: float = 0.0) -> bool:
        """Refuses new jobs, waits for those that run or are queued, and cancels those that take longer.

        Args:
            seconds: How long they may take, and half as long again until the cancelled ones stop.

        Returns:
            Whether no job runs any more.
        """
        with self._lock:
            self._closed = True
        started = time.monotonic()
        while self._active and time.monotonic() < started + seconds:
            time.sleep(0.02)
        with self._lock:
            for job in self._active.values():
                job.cancel()
        while self._active and time.monotonic() < started + 1.5 * seconds:
            time.sleep(0.02)
        for name, lane in self._lanes.items():
            for _ in range(lane.workers):
                self._queues[name].put(None)
        return not self._active

    def _start_workers(self) -> None:
        """Starts the threads with the first job, not before: a process that only imports the package has none."""
        usual = torch.get_num_threads()
        ready = threading.Semaphore(0)
        count = 0
        for name, lane in self._lanes.items():
            for number in range(lane.workers):
                arguments = (name, lane.threads or usual, ready)
                threading.Thread(target=self._work, args=arguments, name=f"{name}-{number}", daemon=True).start()
                count += 1
        for _ in range(count):
            ready.acquire()
        # The number is each thread's own, but the last one set is the default of threads to come.
        torch.set_num_threads(usual)
        self._started = True

    def _work(self, name: str, threads: int, ready: threading.Semaphore) -> None:
        if sys.platform == "linux" and self._lanes[name].niceness:
            with suppress(OSError):  # the threads that torch starts for this one inherit it
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._lanes[name].niceness)
        torch.get_num_threads()  # the first call in a thread takes the default, and would undo the next line
        torch.set_num_threads(threads)
        ready.release()
        while (job := self._queues[name].get()) is not None:
            with self._lock:
                self._waiting[name] -= 1
            if job.claim():
                with self._memory.reserve(job.nbytes):
                    self._finish(job)

    def _finish(self, job: Job[Any]) -> None:
        try:
            job.execute()
        finally:
            with self._lock:
                if self._active.get(job.key) is job:
                    del self._active[job.key]
