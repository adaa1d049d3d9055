"""Every forward pass, model load and download runs as a job: once for equal requests, in a worker pool, within limits.

A pool has its own worker threads and queue, so that work of one kind never waits for work of another: digits do not
wait for photos, nor a quick map for a slow one. Pools of slow work run at a lower priority of the operating system,
which leaves the processor to the quick ones. Within a pool, those who asked for least are served first, and none of
them occupies all of its threads. Long work is many turns; see ``job.Work``.

A job that needs another (a map needs its forward pass) calls ``JobRunner.run``: the inner job then runs in the same
thread, unless it is running elsewhere already and only has to be awaited.
"""

import os
import sys
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from contextlib import nullcontext, suppress
from typing import Any, TypeVar

import torch

from vit_demo.errors import BusyError, InputError
from vit_demo.service.job import Cancelled, Job, Turn, Work, current_job, owner
from vit_demo.service.job_limits import MEMORY, MEMORY_OF_ONE, POOLS, SMALL_JOB, USUAL_SECONDS, WorkerPool
from vit_demo.service.queues import ByteSemaphore, FairQueue

T = TypeVar("T")

SHUTTING_DOWN = "The server is shutting down: try again in a moment."


class JobRunner:
    """Runs jobs in worker pools; safe to call from any thread.

    Args:
        pools: By name.
        nbytes: Memory that all running jobs may need together, by the estimates with which they are submitted.
    """

    TOTALS = ("jobs", "refused_jobs", "job_wait_seconds", "job_seconds")
    """What ``totals`` counts, by pool and name: the seconds are those that jobs waited for a thread, and took in it."""

    def __init__(self, pools: Mapping[str, WorkerPool] = POOLS, nbytes: int = MEMORY) -> None:
        self._pools = dict(pools)
        self._nbytes = nbytes
        self._closed: set[str] = set()
        self.is_closing = False
        self._begin()
        if hasattr(os, "register_at_fork"):  # not on Windows
            begin = weakref.WeakMethod(self._begin)
            os.register_at_fork(after_in_child=lambda: (function := begin()) and function())

    def _begin(self) -> None:
        """Starts without jobs and threads, as the child of a fork has to: the threads stay in the parent."""
        self._memory = {False: ByteSemaphore(self._nbytes), True: ByteSemaphore(self._nbytes // 2)}  # True: of custom
        self.queues: dict[str, FairQueue[Job[Any]]] = {
            name: FairQueue(max(1, pool.workers - 1)) for name, pool in self._pools.items()
        }
        self._active: dict[Hashable, Job[Any]] = {}
        self.totals = defaultdict[tuple[str, str], float](float)
        self._lock = threading.Lock()
        self._started = False

    @property
    def is_stuck(self) -> bool:
        """Whether a job goes on that should have ended."""
        with self._lock:
            return any(job.is_stuck for job in self._active.values())

    def submit(
        self, key: Hashable, work: Work[T], pool: str, nbytes: int = 0, seconds: float = USUAL_SECONDS
    ) -> Job[T]:
        """Starts a job, or joins the one with the same key that is queued or running; None is equal to no key.

        The work takes nothing, may call ``report``, and needs roughly ``nbytes`` of memory and so many seconds.

        Raises:
            BusyError: If too many jobs are queued in the pool, or the runner is closed.
            InputError: If it needs more memory than a visitor may have.
        """
        check_share(nbytes)
        key = object() if key is None else key
        with self._lock:
            who = owner.get()
            job = self._active.get(key)
            if job is not None and job.is_wanted:
                if who not in job.owners:  # its turn may come sooner
                    job.owners.add(who)
                    if job.turn.pool:  # one within another is not queued
                        self._queue(who, job)
                return job
            if pool in self._closed:
                raise BusyError(SHUTTING_DOWN)
            if not self._has_room(pool, who):
                self.totals[pool, "refused_jobs"] += 1
                raise BusyError("The server is busy: try again in a moment.")
            if not self._started:
                self._start_workers()
            job = self._active[key] = Job(key, work, Turn(pool, nbytes, seconds))
            job.owners.add(who)
            self._queue(who, job)
        return job

    def drop(self, job: Job[Any]) -> None:
        """Ends a job that nobody needs any more: at once if it has not begun."""
        job.cancel()
        if job.claim():
            self._finish(job)

    def _queue(self, who: str, job: Job[Any]) -> None:
        self.queues[job.turn.pool].put(who, job, job.turn.seconds)

    def seconds_until(self, job: Job[Any]) -> float:
        """Estimated time until a job begins: what is left of those that run in its pool, and those before it."""
        pool = job.turn.pool
        with self._lock:
            running = [one for one in self._active.values() if one.turn.pool == pool and one.seconds_so_far >= 0]
        left = [max(0.0, one.turn.seconds - one.seconds_so_far) for one in running]
        left += [one.turn.seconds for one in self.queues[pool].before(job)]
        return sum(left) / self._pools[pool].workers

    def _has_room(self, pool: str, who: str) -> bool:
        """Whether an owner may queue another job: up to a quarter of the pool's room, and always a first job."""
        most, queue = self._pools[pool].waiting, self.queues[pool]
        if not who:
            return queue.count() < most
        own = queue.count(who)
        return queue.count() < (4 * most if own == 0 else most) and own < max(1, most // 4)

    def run(self, key: Hashable, work: Callable[[], T], pool: str, nbytes: int = 0) -> T:
        """Waits for the result of a job, or its error; called within another job, it runs in the same thread."""
        outer = current_job.get()
        check_share(nbytes)
        while outer is None:
            with suppress(Cancelled):  # it was cancelled just before it was joined
                return self.submit(key, work, pool, nbytes).result()
        if key is None:
            return work()
        while True:
            with self._lock:
                job = self._active.get(key)
                if job is None:
                    job = self._active[key] = Job(key, work, parent=outer)
            while job.claim():  # each of its turns
                if self._finish(job):
                    return job.result()
            while not job.poll(0.2):
                outer.report(job.done, job.total)
            with suppress(Cancelled):
                return job.result()

    async def run_async(self, key: Hashable, work: Callable[[], T], *turn: Any) -> T:
        """As ``run``, with the fields of a ``Turn``, awaited without occupying a thread; not for use within a job."""
        while True:
            with suppress(Cancelled):
                return await self.submit(key, work, *turn).result_async()

    def close(self, seconds: float = 0.0, accepting: float = 0.0) -> bool:
        """Ends training, and waits for other jobs; refuses new ones, and ends those that take longer than ``seconds``.

        New jobs are accepted for ``accepting`` seconds while there is any, until a proxy sends no more. Returns whether
        no job runs any more.
        """
        started = time.monotonic()
        self.is_closing = True
        for pools, until in (({"training"}, accepting), (set(self._pools), seconds), (set(self._pools), seconds + 0.3)):
            with self._lock:
                self._closed = pools
                for job in self._active.values():
                    if job.turn.pool == "training" or until > seconds:
                        job.cancel(BusyError(SHUTTING_DOWN))
            for pool in pools & self.queues.keys():  # so that idle threads end; see ``job_limits.POOLS``
                self.queues[pool].close()
            while self._active and time.monotonic() < started + until:
                time.sleep(0.02)
        return not self._active

    def _start_workers(self) -> None:
        """Starts the threads with the first job, not before: a process that only imports the package has none."""
        usual = torch.get_num_threads()
        ready = threading.Semaphore(0)
        count = 0
        for name, pool in self._pools.items():
            for number in range(pool.workers):
                arguments = (name, pool.threads or usual, ready)
                threading.Thread(target=self._work, args=arguments, name=f"{name}-{number}", daemon=True).start()
                count += 1
        for _ in range(count):
            ready.acquire()
        # The number is set per thread, but is also the default of threads started later.
        torch.set_num_threads(usual)
        self._started = True

    def _work(self, name: str, threads: int, ready: threading.Semaphore) -> None:
        if sys.platform == "linux" and self._pools[name].niceness:
            with suppress(OSError):  # inherited by the threads that torch starts
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._pools[name].niceness)
        torch.get_num_threads()  # the first call in a thread takes the default, and would undo the next line
        torch.set_num_threads(threads)
        ready.release()
        queue = self.queues[name]
        while (taken := queue.take()) is not None:
            who, job = taken
            nbytes, memory, is_over = job.turn.nbytes, self._memory[name.startswith("custom")], True
            with memory.reserve(nbytes, who) if nbytes > SMALL_JOB else nullcontext():
                # Claimed only now: a job that holds memory may need this job, and then runs it itself. And only in the
                # pool of its turn, since each of its owners had put it into that of an earlier one.
                if job.turn.pool == name and job.claim():
                    started = time.monotonic()
                    while not (is_over := self._finish(job)) and self.is_closing and job.claim():
                        pass
                    with self._lock:
                        self.totals[name, "jobs"] += 1
                        self.totals[name, "job_wait_seconds"] += started - job.submitted_at
                        self.totals[name, "job_seconds"] += time.monotonic() - started
            queue.done(who)
            if not is_over:
                self._queue(who, job)
            del taken, job  # or else its result would stay in memory until this thread's next job

    def _finish(self, job: Job[Any]) -> bool:
        """Runs a job up to its next turn; whether it is over."""
        if not job.execute():
            return False
        with self._lock:
            if self._active.get(job.key) is job:
                del self._active[job.key]
        return True


def check_share(nbytes: int) -> None:
    """Refuses a visitor's work, by an ``InputError``, if its estimate is above ``MEMORY_OF_ONE``."""
    if owner.get() and nbytes > MEMORY_OF_ONE:
        raise InputError("This takes too much memory here: choose a larger patch size or a smaller model.")
