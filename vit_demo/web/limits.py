"""What one stranger, and all of them together, may send to the server and leave on it."""

from __future__ import annotations

EVENT_BYTES = 1_000_000
"""Body of a request that is not an upload."""

EVENT_VALUES = 20_000
"""JSON values in such a body."""

UPLOAD_BYTES = 50_000_000
"""One uploaded file."""

UPLOAD_QUOTA = 300_000_000
"""Uploads of one address within ``KEEP_SECONDS``."""

UPLOADS_TOTAL = 2_000_000_000
"""Files that visitors left in the upload folder; beyond it the oldest make room."""

KEEP_SECONDS = 3600.0
"""How long a file stays after it was last used."""

BODY_SECONDS = 60.0
"""Time in which the whole body of a request must have come."""

SESSIONS = 32
"""Sessions whose component values Gradio keeps; the page does not depend on them."""

QUEUE = 64
"""Events that may wait in Gradio's queue."""

PICTURE_BYTES = 48 << 20
"""Decoded photos that are kept for the next patch size or fit."""

ANSWER_BYTES = 16 << 20
"""Answers that are kept for visitors who ask again, and as much for maps."""

NAME_LENGTH = 200
"""Characters of a name that a visitor may send."""
