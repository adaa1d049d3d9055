"""``serve``: the page."""

import argparse
import gc
import os

from vit_demo.checks import check_proxies, require
from vit_demo.cli.parser import Commands, add_command
from vit_demo.errors import InputError


def add(commands: Commands) -> None:
    """Adds the command."""
    command = add_command(commands, "serve", run, "serve the page", ["", "--host 0.0.0.0 --port 8000"])
    command.add_argument("--host", help="address to listen on (default: $GRADIO_SERVER_NAME, or 127.0.0.1)")
    command.add_argument(
        "--port", type=int, help="port (default: $GRADIO_SERVER_PORT, or the first free one from 7860)"
    )


def run(options: argparse.Namespace) -> None:
    """Serves the page until the program is stopped; ``InputError`` if the port is not a number, or is in use."""
    port = os.environ.get("GRADIO_SERVER_PORT", "")
    if port and not port.isdecimal():  # Gradio reads it when it is imported
        raise InputError(f"GRADIO_SERVER_PORT is {port!r}: set it to a number from 1 to 65535, or unset it.")
    require("gradio", "The page")
    check_proxies()  # of which Gradio makes a client when it is imported
    gc.disable()  # until the page is served: what is imported stays, and collecting garbage among it takes a second
    try:
        from vit_demo.web.server import launch

        launch(options.host, options.port)
    finally:
        gc.enable()
