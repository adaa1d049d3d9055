"""Limits on requests, uploads and caches of the server."""

from __future__ import annotations

MAX_EVENT_BYTES = 1_000_000
"""Body of a request that is not an upload."""

MAX_EVENT_VALUES = 20_000
"""JSON values in such a body."""

MAX_UNFINISHED_BYTES = 64_000_000
"""Bodies of events that are still arriving, of all visitors together."""

MAX_UNFINISHED_BYTES_OF_ONE = 16_000_000
"""The same of one address."""

UPLOAD_QUOTA_BYTES = 300_000_000
"""Uploads of one address in one hour."""

UPLOAD_FILE_BYTES = 50_000
"""What each file of an upload counts beside its bytes, because it takes a folder of its own."""

UPLOAD_FOLDER_BYTES = 2_000_000_000
"""All files in the upload folder; beyond that the oldest are deleted."""

UPLOAD_FOLDER_FILES = 20_000
"""The number of these files; beyond that the oldest are deleted as well."""

UPLOAD_LIFETIME_SECONDS = 3600.0
"""Time after its last use when an uploaded file is deleted."""

BODY_TIMEOUT_SECONDS = 60.0
"""Time within which the whole body of a request must arrive."""

UNHEARD_SECONDS = 10.0
"""Time after which an event stops whose stream nobody opened, or opened again."""

EVENT_SECONDS = 900.0
"""Time that an event may take."""

REQUESTS_PER_SECOND = 100
"""Requests with a body that begin in a second, of one address; further ones wait their turn."""

REQUESTS_AT_ONCE = 50
"""How many of them begin at once after a pause."""

MAX_EVENTS_OF_ONE = 16
"""Unfinished events of one address."""

MAX_QUEUE_LENGTH = 64
"""Events waiting in Gradio's queue."""

MAX_SESSIONS = 2000
"""Sessions whose messages are kept until they collect them; beyond that the oldest are dropped."""

MAX_SESSION_MESSAGES = 100
"""Messages of one session that wait to be collected; beyond that its further events are refused."""

MAX_SESSION_BYTES = 16_000_000
"""Their results in bytes; beyond that its further events are refused as well."""

MAX_UNCOLLECTED_MESSAGES = 500
"""Messages of all sessions that wait to be collected; beyond that the oldest sessions are dropped."""

MAX_UNCOLLECTED_BYTES = 64_000_000
"""Their results in bytes; beyond that the oldest sessions are dropped as well."""

UNCOLLECTED_SECONDS = 300.0
"""Time after which a session that does not collect its messages is dropped."""

MAX_HEADER_LENGTH = 4096
"""Characters of one request header, cookies aside."""

MAX_SEGMENT_LENGTH = 255
"""Bytes of one part of a path, as in most file systems."""

MAX_PATH_LENGTH = 2000
"""Bytes of a whole path."""

MAX_TOOL_CALLS = 32
"""MCP calls under way at once."""

MAX_TOOL_CALLS_OF_ONE = 8
"""The same of one address."""

TOOL_SECONDS = 300.0
"""Time that one MCP call may take."""

PICTURE_CACHE_BYTES = 48 << 20
"""Decoded photos, kept for the next patch size or fit."""

RESULT_CACHE_BYTES = 16 << 20
"""Replies to requests of the page, compressed, and as much again for maps."""

ASSET_CACHE_BYTES = 8 << 20
"""Compressed scripts and styles of the page."""

MAX_NAME_LENGTH = 200
"""Characters of a preset's, a method's or a class's name in a request."""

MAX_SENT_TOKENS = 4096
"""Patches, of both pictures together, whose tokens the page gets in one reply."""
