"""Limits on untrusted pictures: bytes, pixels, memory and seconds.

A picture file is decoded by a separate process (see `reading`), two at a time, which the kernel ends when it
exceeds `MAX_DECODER_MEMORY` or `MAX_CPU_SECONDS`. The limits on pixels and scans refuse most decompression bombs
before that, with a message that gives the reason.
"""

MAX_SIDE = 2048
"""Longest side of a decoded picture, in pixels; larger ones are reduced."""

MIN_PHOTO_SIDE = 16
"""Shortest side of a photo, in pixels: one with fewer has fewer pixels than a single patch of most models."""

MAX_DIMENSION = 65_535
"""Longest side of a picture before it is reduced, in pixels: the limit of JPEG."""

MAX_PIXELS = 100_000_000
"""Pixels of a JPEG, which is decoded at a fraction of its size, or of a grey picture, at one byte per pixel."""

MAX_COLOUR_PIXELS = 37_500_000
"""Pixels of a picture with colour, transparency or more than 8 bits of grey, at four bytes per pixel."""

MAX_WEBP_PIXELS = 25_000_000
"""Pixels of a WebP, whose decoder holds four copies of the picture."""

MAX_JPEG_SCANS = 100
"""Scans of a JPEG. A progressive one has about ten, and each of them covers the whole picture."""

MAX_DECODER_MEMORY = 640_000_000
"""Address space of the decoding process, in bytes."""

MAX_CPU_SECONDS = 2.5
"""CPU time of the decoding process, in seconds. A 24-megapixel PNG, the slowest ordinary picture, takes about 1."""

MAX_DECODE_SECONDS = 10.0
"""Elapsed time of the decoding process, in seconds; more than CPU time if the machine is busy."""

MAX_WAIT_SECONDS = 20.0
"""Time that a picture may wait for others to be decoded, in seconds."""

MAX_DRAWING_CHARACTERS = 1_000_000
"""Length of a drawing's data URL; the pad sends a PNG of a few hundred pixels per side."""

MAX_DRAWING_SIDE = 2048
"""Longest side of a drawing's canvas, in pixels."""
