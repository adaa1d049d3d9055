"""Limits that several parts of the server share: of caches, of names, and of the tokens in one reply."""

PICTURE_CACHE_BYTES = 48 << 20
"""Decoded photos, kept for the next patch size or fit."""

RESULT_CACHE_BYTES = 16 << 20
"""Replies to requests of the page, compressed, and as much again for maps."""

MAX_NAME_LENGTH = 200
"""Characters of a preset's, a method's or a class's name in a request."""

MAX_SENT_TOKENS = 4096
"""Patches, of both pictures together, whose tokens the page gets in one reply."""
