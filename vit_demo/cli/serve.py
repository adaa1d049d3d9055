"""``serve``: the page."""

from __future__ import annotations

import argparse

from vit_demo.cli.parser import Commands, add_command


def add(commands: Commands) -> None:
    """Adds the command."""
    command = add_command(commands, "serve", run, "serve the page", ["", "--host 0.0.0.0 --port 8000"])
    command.add_argument("--host", help="address to listen on ($GRADIO_SERVER_NAME, or 127.0.0.1)")
    command.add_argument("--port", type=int, help="port ($GRADIO_SERVER_PORT, or 7860 or the next free one)")


def run(options: argparse.Namespace) -> None:
    """Serves the page until the program is stopped."""
    from vit_demo.web import launch

    launch(options.host, options.port)
