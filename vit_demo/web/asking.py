"""Questions that take a while, from a page that can only call a function and wait for what it returns.

The page asks the same question again and again until it has the answer; meanwhile it hears how far the work is. Nobody
has to start, name or cancel a job: the question is its name, and work that is no longer asked for is given up.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

import cachetools

from vit_demo.methods import Progress

Answer = Callable[[dict[str, Any], Progress], dict[str, Any]]
"""Answers a question; a ``ValueError`` says in one sentence why it cannot."""

PATIENCE = 0.4
"""Seconds that one call waits for the answer before it tells how far the work is."""

GIVEN_UP = 5.0
"""Seconds after which a question that is not asked again is dropped."""

REMEMBERED = 64
"""Answers kept."""


@dataclass(eq=False)
class _Job:
    asked: float
    future: Future[dict[str, Any]] = field(init=False)
    done: int = 0
    total: int = 0

    def progress(self, done: int, total: int) -> None:
        """Notes how far the work is, and ends it when nobody waits for it any more."""
        if time.monotonic() - self.asked > GIVEN_UP:
            raise _GivenUpError
        self.done, self.total = done, total


class _GivenUpError(Exception):
    """Nobody waits for the answer any more."""


class Asker:
    """Answers questions in the background; safe to call from several threads.

    Args:
        answer: Does the work.
        workers: How many questions are worked on at once.
    """

    def __init__(self, answer: Answer, workers: int = 4) -> None:
        self._answer = answer
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="asked")
        self._jobs: cachetools.LRUCache[str, _Job] = cachetools.LRUCache(REMEMBERED)
        self._lock = threading.Lock()

    def __call__(self, question: dict[str, Any]) -> dict[str, Any]:
        """Starts on a question or goes on with it, and waits a moment.

        Args:
            question: JSON values; equal questions are answered once.

        Returns:
            ``{"answer": ...}``, or ``{"error": one sentence}``, or ``{"done", "total"}`` while it is being worked on
            (``total`` 0 where that is not known): then ask again.
        """
        name = json.dumps(question, sort_keys=True)
        with self._lock:
            job = self._jobs.get(name)
            if job is None:
                job = self._jobs[name] = _Job(time.monotonic())
                # In the visitor's own context, which says whose GPU time it is on a ZeroGPU Space.
                job.future = self._pool.submit(copy_context().run, self._work, question, job)
            job.asked = time.monotonic()
        if wait([job.future], timeout=PATIENCE).not_done:
            return {"done": job.done, "total": job.total}
        said = job.future.result()
        if "answer" not in said:
            with self._lock:
                if self._jobs.get(name) is job:
                    del self._jobs[name]  # worth another try
        return said

    def _work(self, question: dict[str, Any], job: _Job) -> dict[str, Any]:
        try:
            job.progress(0, 0)  # it may have waited in the queue for longer than its visitor
            return {"answer": self._answer(question, job.progress)}
        except _GivenUpError:
            return {"done": 0, "total": 0}  # should someone ask after all, the next call starts anew
        except ValueError as error:
            return {"error": str(error)}
        except Exception:
            logging.getLogger(__name__).exception("A question of the page could not be answered")
            return {"error": "This could not be worked out: try another picture or a larger patch size."}
