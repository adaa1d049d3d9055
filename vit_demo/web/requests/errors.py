"""What people read of an error."""

import logging

from vit_demo.errors import InputError

INTERNAL_ERROR = "Something went wrong on the server: try another picture or a larger patch size."
"""The message for an unexpected exception, which is logged."""


def message_of(error: Exception) -> str:
    """The message of an ``InputError``; for a bug, which is logged, a general one."""
    if isinstance(error, InputError):
        return str(error)
    logging.getLogger(__name__).error("A request failed", exc_info=error)
    return INTERNAL_ERROR
