"""The limits on hostile input: how many bytes, pixels, seconds and how much memory a picture may cost.

A visitor may send anything. A picture file is decoded by a separate process (see `decoder_process`), one at a time,
and the kernel ends that process where it exceeds `MAX_DECODER_MEMORY` or `MAX_CPU_SECONDS`. The limits on pixels and
scans refuse most bombs earlier, with a sentence that says why.
"""

MAX_SIDE = 2048
"""Longest side of the picture that is handed on, in pixels."""

MAX_BYTES = 50_000_000
"""Largest file that is read, in bytes."""

MAX_DIMENSION = 65_535
"""Longest side of a picture that is decoded, in pixels: as much as JPEG allows."""

MAX_PIXELS = 100_000_000
"""Largest JPEG, which is decoded at a fraction of its size, and largest grey picture, at one byte a pixel."""

MAX_COLOUR_PIXELS = 37_500_000
"""Largest picture in colour, with transparency or of deep grey that is decoded whole, at four bytes a pixel."""

MAX_WEBP_PIXELS = 25_000_000
"""Largest WebP, whose decoder holds four copies of the picture."""

MAX_JPEG_SCANS = 100
"""Most scans of a JPEG. A progressive one has about ten, and each of them visits the whole picture."""

MAX_DECODER_MEMORY = 640_000_000
"""Address space of the decoding process, in bytes."""

MAX_CPU_SECONDS = 2.5
"""CPU time of the decoding process, in seconds. A 24-megapixel PNG, the slowest honest picture, takes about 1."""

MAX_DECODE_SECONDS = 10.0
"""Time that is waited for the decoding process, in seconds, on a machine that is busy with other things."""

MAX_WAIT_SECONDS = 20.0
"""Longest wait of a picture for its turn to be decoded, in seconds."""

MAX_DRAWING_CHARACTERS = 1_000_000
"""Longest data URL of a drawing; the pad sends a PNG of a few hundred pixels a side."""

MAX_DRAWING_SIDE = 2048
"""Longest side of a drawing's canvas, in pixels."""
