"""Requests while a visitor draws, rubs out or films: each page has one job at most, that of its newest picture."""

from typing import Any

from cachetools import TTLCache

from vit_demo.errors import InputError
from vit_demo.service.engine import get_engine
from vit_demo.service.job import Job, Turn, Work, owner
from vit_demo.service.job_limits import GRACE
from vit_demo.web.requests import parse

_newest: TTLCache[tuple[str, str], Job[bytes]] = TTLCache(256, GRACE)  # until its page has asked again


def page_of(request: dict[str, Any]) -> str:
    """The name of the page that sent a live request; empty for any other request."""
    if request.get("live") is None:
        return ""
    page = parse.short_string(request["live"], "name of the page")
    if not page or request.get("kind") != "result":
        raise InputError("A live request is for a result and names its page: reload the page.")
    return page


def live_job(page: str, key: bytes, work: Work[bytes], turn: Turn) -> Job[bytes]:
    """The job of a picture, in place of that of the picture that the same page sent before."""
    jobs, of_page = get_engine().jobs, (owner.get(), page)
    name, known = ("live", *of_page, key), _newest.get(of_page)
    if known is not None and known.key != name:
        jobs.drop(known)
    elif known is not None and known.is_done:
        return known  # of a page that asks again because its first reply was only progress
    job = _newest[of_page] = jobs.submit(name, work, *turn)
    return job
