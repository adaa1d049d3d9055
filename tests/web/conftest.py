"""The running page, and fixtures that empty what the server keeps."""

from collections.abc import Iterator

import gradio as gr
import pytest

from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.requests import poll
from vit_demo.web.server import launch

from ..replies import forget


@pytest.fixture(scope="session")
def page() -> Iterator[gr.Blocks]:
    """The page, served at its ``local_url``."""
    page = launch("127.0.0.1", wait=False)
    yield page
    page.close()


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
