"""A running page for tests that only call it."""

from collections.abc import Iterator

import gradio as gr
import pytest

from vit_demo.web import launch
from vit_demo.web.components.pad import example_picture


@pytest.fixture(scope="session")
def running_page() -> Iterator[gr.Blocks]:
    """The page, served at its ``local_url``."""
    page = launch("127.0.0.1", wait=False)
    yield page
    page.close()


@pytest.fixture(scope="session")
def three(tmp_path_factory):
    """A drawn 3 as a picture file."""
    path = tmp_path_factory.mktemp("digits") / "three.png"
    example_picture(3).save(path)
    return path
