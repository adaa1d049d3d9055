"""The running page, and fixtures that empty what the server keeps."""

from collections.abc import Iterator

import gradio as gr
import pytest

from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.guard import session_queues
from vit_demo.web.requests import poll
from vit_demo.web.server import launch

from ..replies import forget
from .http_requests import wait_until_idle


@pytest.fixture(scope="session")
def page() -> Iterator[gr.Blocks]:
    """The page, served at its ``local_url``."""
    page = launch("127.0.0.1", wait=False)
    yield page
    page.close()


@pytest.fixture
def empty_session_queues(page: gr.Blocks) -> Iterator[None]:
    """Drops what no test collected, before and after one that counts it or leaves something."""

    def drop_all() -> None:
        wait_until_idle(page)
        queues = session_queues.of(page)
        for session in list(queues):
            queues._drop(session)

    drop_all()
    yield
    drop_all()


@pytest.fixture
def empty_replies() -> Iterator[None]:
    """Empties the cache of replies, before and after a test that replaces what computes them."""
    forget(poll._replies)
    yield
    forget(poll._replies)


@pytest.fixture(scope="session")
def three(tmp_path_factory):
    """A drawn 3 as a picture file."""
    path = tmp_path_factory.mktemp("digits") / "three.png"
    example_picture(3).save(path)
    return path
