"""``serve``: the page."""

import argparse
import gc

from vit_demo.checks import check_proxies, require
from vit_demo.cli.parser import Commands, add_command
from vit_demo.defaults import HOST, PORT


def add(commands: Commands) -> None:
    """Adds the command."""
    command = add_command(commands, "serve", run, "serve the page", ["", "--host 0.0.0.0 --port 8000"])
    command.add_argument("--host", help=f"address to listen on (default: $GRADIO_SERVER_NAME, or {HOST})")
    command.add_argument(
        "--port", type=int, help=f"port (default: $GRADIO_SERVER_PORT, or the first free one from {PORT})"
    )


def run(options: argparse.Namespace) -> None:
    """Serves the page until the program is stopped; ``InputError`` if the port is not a number, or is in use."""
    require("gradio", "The page")
    check_proxies()  # of which Gradio makes a client when it is imported
    gc.disable()  # until the page is served: what is imported stays, and collecting garbage among it takes a second
    try:
        from vit_demo.web import settings

        settings.server_port()  # which Gradio reads when it is imported
        from vit_demo.web.server import launch

        launch(options.host, options.port)
    finally:
        gc.enable()
