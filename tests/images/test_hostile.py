"""Hostile files take little memory and time, and give a picture or one message."""

import base64
import io
import resource
import socket
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vit_demo.errors import ImageError
from vit_demo.images import MAX_SIDE, decode_drawing, decode_frame, decode_image, read_image, reading
from vit_demo.images.decoder import NOT_A_PICTURE, TOO_COMPLEX, decode

from . import bombs

MEASURE = """
import pathlib, resource, sys, threading
from vit_demo.images import reading

def peak():
    return sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024

def read(data):
    try:
        reading.read_image(data)
    except ValueError:
        pass

files = [pathlib.Path(name).read_bytes() for name in sys.argv[1:]]
before = peak()
threads = [threading.Thread(target=read, args=(data,)) for data in files]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(round(peak() - before))
"""


def peak_megabytes(files: list[bytes], folder: Path) -> int:
    """Reads files at the same time in a fresh process, and gives the memory that it took above the baseline."""
    paths = [folder / str(number) for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    return int(bombs.run_without_torch(MEASURE, *paths))


def test_many_at_once_stay_small(tmp_path: Path):
    """What is measured is the memory of this process and of the largest child; the corpus has more kinds of files."""
    files = [
        bombs.png_with_exif_of(3_000, 1_000_000),
        bombs.tiff(16, 16, tile=16_000),
        bombs.png(6_100, 6_100, bombs.RGBA, bits=16),
        bombs.png(10_000, 10_000, bombs.GREY),
        bombs.encoded(Image.new("RGB", (5_000, 5_000)), "WEBP", lossless=True, quality=0, method=0),
    ]
    assert peak_megabytes(files, tmp_path) < 800


def test_large_photos_are_read_with_little_memory(tmp_path: Path):
    photo = bombs.encoded(Image.new("RGB", (8_000, 6_000), "red"), "JPEG")
    assert peak_megabytes([photo], tmp_path) < 250
    assert decode_image(photo).size == (2048, 1536)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bombs.gif_of_comments(50_000),
        lambda: bombs.text_ppm(2_500),
        lambda: bombs.tiff(100, 100, values=3_000, size=1_000_000),
    ],
    ids=["gif-comments", "text-ppm", "tiff-directory"],
)
def test_slow_files_are_refused(make: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch):
    sooner = reading._START.replace("main()\n", "main.__globals__['MAX_CPU_SECONDS'] = 1.0\nmain()\n")
    monkeypatch.setattr(reading, "_START", sooner)
    data = make()
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with pytest.raises(ImageError) as caught:
        decode_image(data)
    assert str(caught.value) == TOO_COMPLEX
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - used
    assert used < 10, "a second of a processor and what starting takes; it was minutes"


@pytest.mark.parametrize("scans", [12, 300])
def test_progressive_jpegs_of_an_ordinary_number_of_scans_are_read(scans: int):
    assert decode_image(bombs.jpeg_of_scans(64, scans)).size == (64, 64)


def test_bytes_are_never_a_path(tmp_path: Path):
    (tmp_path / "here.png").write_bytes(bombs.png(8, 8, bombs.RGB))
    for name in ("here.png", "missing.png", "."):
        path = tmp_path / name
        for source in (str(path), path, str(path).encode(), bytearray(str(path).encode()), f"file://{path}", None):
            with pytest.raises(ImageError) as caught:
                decode_image(source)  # type: ignore[arg-type]
            assert str(caught.value) == NOT_A_PICTURE


@pytest.mark.parametrize("most", ["side", "webp"])
def test_what_is_above_the_limits_is_refused(most: str):
    data = {
        "side": lambda: bombs.png(70_000, 1, bombs.GREY),
        "webp": lambda: bombs.encoded(Image.new("RGB", (5_001, 5_000)), "WEBP", lossless=True, quality=0, method=0),
    }[most]()
    with pytest.raises(ImageError, match="more than"):
        decode_image(data)


@cache
def whole_files() -> dict[str, bytes]:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (48, 40, 3), dtype=np.uint8))
    files = {kind: bombs.encoded(noise, kind) for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "PPM")}
    frames = {"save_all": True, "append_images": [noise.rotate(90), noise.rotate(180)]}
    return files | {
        "progressive": bombs.encoded(noise, "JPEG", progressive=True),
        "alpha": bombs.encoded(noise.convert("RGBA"), "PNG"),
        "HEIC": Path(__file__).with_name("turned.heic").read_bytes(),
        "deflated": bombs.encoded(noise, "TIFF", compression="tiff_adobe_deflate"),
        **{f"animated {kind}": bombs.encoded(noise, kind, **frames) for kind in ("GIF", "WEBP", "PNG", "TIFF", "AVIF")},
    }


def outcome(data: bytes) -> str:
    """A picture or one sentence: anything else is an error."""
    try:
        image = decode(data)
    except ImageError as error:
        message = str(error)
        assert "\n" not in message and message.endswith(".") and message.count(". ") == 0
        return message
    assert image.mode == "RGB" and 1 <= max(image.size) <= MAX_SIDE
    return "picture"


@pytest.mark.parametrize("kind", whole_files())
def test_files_cut_off_anywhere(kind: str):
    data = whole_files()[kind]
    for share in range(0, 100, 5):
        outcome(data[: len(data) * share // 100])
    assert outcome(data) == "picture"


@pytest.mark.parametrize("kind", whole_files())
def test_files_with_any_bytes_changed(kind: str):
    rng = np.random.default_rng(0)
    data = np.frombuffer(whole_files()[kind], dtype=np.uint8)
    for places in (1, 3, 30):
        for reach in (64, 400, len(data)):  # headers and directories come first
            changed = data.copy()
            changed[rng.integers(0, min(reach, len(data)), places)] = rng.integers(0, 256, places)
            outcome(changed.tobytes())


@pytest.mark.parametrize("tail", [b"%PDF-1.7", b"PK\3\4" + bytes(100), b"<script>", b"\xff\xd8\xff\xe0", b"GIF89a"])
def test_what_follows_a_picture_is_ignored(tail: bytes):
    files = whole_files()
    for kind in ("PNG", "JPEG", "GIF", "BMP"):
        assert outcome(files[kind] + tail) == "picture"
        assert outcome(tail + files[kind]) != "picture" or tail[:3] in (b"GIF", b"\xff\xd8\xff")


@pytest.mark.parametrize(
    "garbage", [b"", b"MM", b"II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x05" + bytes(9)]
)
def test_invalid_metadata_does_not_matter(garbage: bytes):
    for kind in ("JPEG", "PNG", "WEBP"):
        data = bombs.encoded(Image.new("RGB", (32, 16)), kind, exif=b"Exif\0\0" + garbage)
        assert decode(data).size == (32, 16)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I;16B", "I", "F"])
def test_modes_of_a_tiff(mode: str):
    grey = np.tile(np.linspace(0, 255, 64).round().astype(np.uint8), (16, 1))
    if mode in ("I;16", "I;16B"):
        file = io.BytesIO()
        Image.frombytes(mode, (64, 16), (grey.astype(">u2" if mode == "I;16B" else "<u2") * 257).tobytes()).save(
            file, "TIFF"
        )
        data = file.getvalue()
    else:
        data = bombs.encoded(Image.fromarray(grey).convert(mode, dither=Image.Dither.NONE), "TIFF")
    result = np.asarray(decode(data)).astype(int)
    expected = (grey > 127) * 255 if mode == "1" else grey.astype(int)
    assert np.abs(result - expected[..., None]).max() <= 1


def test_strips_leave_no_seams():
    """Pictures of more than a megapixel are flattened in strips; all at once must give the same."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (1500, 1000, 4), dtype=np.uint8)
    image = Image.fromarray(pixels)
    paper = Image.new("RGBA", image.size, "white")
    assert np.array_equal(read_image(image), Image.alpha_composite(paper, image).convert("RGB"))
    deep = rng.integers(0, 65536, (1500, 1000)).astype(np.uint16)
    assert np.array_equal(np.asarray(read_image(Image.fromarray(deep)))[..., 0], (deep * (255 / 65535)).round())


def test_a_decoder_that_is_killed_does_not_call_the_picture_damaged(monkeypatch: pytest.MonkeyPatch):
    """As the kernel does where memory is short."""
    monkeypatch.setattr(reading, "_START", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(ImageError, match="too much time or memory"):
        decode_image(bombs.png(8, 8, bombs.RGB))


@pytest.mark.skipif(sys.platform != "linux", reason="has no namespaces")
def test_a_decoder_has_no_network():
    allowed = subprocess.run(["unshare", "--user", "--net", "true"], stderr=subprocess.DEVNULL, check=False)
    if allowed.returncode:
        pytest.skip("the kernel does not allow it")
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"import socket; socket.create_connection({server.getsockname()}, 5)"
        start = reading._START.replace("main()\n", f"main.__globals__['_set_resource_limits'](2.5); {connect}\n")
        arguments = [sys.executable, "-c", start, str(reading._HERE.parent), str(reading._HERE)]
        ended = subprocess.run(arguments, env=reading._environment(), capture_output=True, text=True, check=False)
    assert "Network is unreachable" in ended.stderr


def test_a_drawing_has_no_more_chunks_than_any_browser_writes():
    drawing = bombs.png(28, 28, bombs.GREY)
    chunk = struct.pack(">I4s", 0, b"abCd") + struct.pack(">I", zlib.crc32(b"abCd"))

    def of_chunks(count: int) -> str:
        data = drawing[:33] + chunk * count + drawing[33:]  # after the header
        return "data:image/png;base64," + base64.b64encode(data).decode()

    assert decode_drawing(of_chunks(900)).size == (28, 28)
    opened = []
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ImageError, match="draw again"):
        patch.setattr(Image, "open", lambda *_, **__: opened.append(1))
        decode_drawing(of_chunks(55_000))
    assert not opened, "it is not parsed"


def frame_of(data: bytes) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(data).decode()


def jpeg(width: int, height: int, mode: str = "RGB", *, extra: bytes = b"", **options: object) -> bytes:
    """Noise, with segments after its start."""
    noise = np.random.default_rng(0).integers(0, 60, (height, width, 3), np.uint8)
    data = bombs.encoded(Image.fromarray(noise).convert(mode), "JPEG", **{"quality": 40, **options})
    return data[:2] + extra + data[2:]


def segment(kind: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 255, kind, len(body) + 2) + body


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (jpeg(455, 256), (455, 256)),
        (jpeg(256, 640, progressive=True), (256, 640)),
        (jpeg(64, 48, "L"), (64, 48)),
        (jpeg(40, 30, extra=segment(0xE1, b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0")), (40, 30)),  # as of Safari's canvas
    ],
)
def test_a_frame_of_a_camera_is_read(data: bytes, size: tuple[int, int]):
    found = decode_frame(frame_of(data))
    assert found.size == size and found.mode == "RGB"
    np.testing.assert_array_equal(found, Image.open(io.BytesIO(data)).convert("RGB"))


EXIF = b"Exif\0\0" + bombs.png_with_exif_of(2_000, 20_000)[41:][:60_000]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8",
        jpeg(300, 257),
        jpeg(641, 200),
        jpeg(64, 64)[:400],
        jpeg(64, 64, extra=b"\xff\xff\xff"),
        jpeg(64, 64, extra=b"\xff\xfe\0\1"),
        jpeg(64, 64, extra=segment(0xFE, b"") * 64),
        bombs.jpeg_of_scans(256, 13),
        bombs.jpeg_of_scans(256, 8_000),
        bombs.png(28, 28, bombs.GREY),
        bombs.encoded(Image.new("RGB", (28, 28)), "WEBP"),
        bombs.encoded(Image.new("RGB", (28, 28)), "TIFF", compression="jpeg"),
    ],
    ids=range(13),
)
def test_any_other_frame_is_refused_before_it_costs_anything(data: bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "to_rgb", lambda *_, **__: pytest.fail("its pixels are decoded"))
    with pytest.raises(ImageError, match="frame of the camera cannot be read"):
        decode_frame(frame_of(data))


def test_metadata_of_a_frame_are_not_parsed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Image.Exif, "load", lambda *_: pytest.fail("they can take gigabytes"))
    data = jpeg(64, 64, extra=segment(0xE1, EXIF) + segment(0xFE, b"a comment") + segment(0xE2, b"ICC_PROFILE\0\1\1"))
    assert decode_frame(frame_of(data)).size == (64, 64)
    with pytest.raises(pytest.fail.Exception):
        Image.open(io.BytesIO(data))
