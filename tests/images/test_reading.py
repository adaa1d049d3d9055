"""Any picture is read as upright RGB; anything else is refused with one clear sentence."""

import io
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

from vit_demo.defaults import MAX_PICTURE_BYTES
from vit_demo.errors import ImageError
from vit_demo.images import MAX_SIDE, read_image, reading
from vit_demo.images.decoder import decode

from .bombs import chunk, encoded

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def picture(width: int = 32, height: int = 16) -> Image.Image:
    """Four quarters of different colours: every turn and flip of it is another picture."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(GREEN, (width // 2, 0, width, height // 2))
    image.paste(BLUE, (0, height // 2, width // 2, height))
    image.paste(WHITE, (width // 2, height // 2, width, height))
    return image


def grey(source: object) -> np.ndarray:
    pixels = np.asarray(read_image(source)).astype(int)  # type: ignore[arg-type]
    assert (pixels == pixels[..., :1]).all()
    return pixels[..., 0]


def sentence(source: object) -> str:
    """Reads what must be refused, and checks that the refusal is one sentence."""
    with pytest.raises(ImageError) as caught:
        read_image(source)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".") and message.count(". ") == 0
    return message


@pytest.fixture(autouse=True)
def _decoded_in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a process takes longer than decoding; ``test_formats`` does."""
    if "formats" not in request.node.name:
        monkeypatch.setattr(reading, "decode_in_process", decode)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "PPM"])
def test_formats(kind: str, tmp_path):
    lossless = kind not in ("JPEG", "WEBP", "AVIF")
    data = encoded(picture(), kind)
    (tmp_path / "picture").write_bytes(data)  # the name has no extension
    expected = np.asarray(picture()).astype(int)
    for source in (data, tmp_path / "picture", str(tmp_path / "picture")):
        image = read_image(source)
        assert image.mode == "RGB" and image.size == (32, 16)
        assert np.abs(np.asarray(image) - expected).mean() <= (0 if lossless else 30)


def test_a_phones_heic_is_turned_upright():
    """``turned.heic``: the picture of 128 x 64, encoded by libheif, with a property that turns it clockwise."""
    turned = np.asarray(picture(128, 64).transpose(Image.Transpose.ROTATE_270)).astype(int)
    image = read_image(Path(__file__).with_name("turned.heic"))
    assert image.mode == "RGB" and image.size == (64, 128)
    assert np.abs(np.asarray(image) - turned).mean() <= 5


def test_pil_images_are_left_alone():
    image = picture()
    result = read_image(image)
    result.paste(0, (0, 0, 32, 16))
    assert np.array_equal(image, picture())


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientations_give_the_same_upright_picture(orientation: int, kind: str):
    upright = np.asarray(picture())
    # What a camera stores so that the viewer's correction, in words of the EXIF standard, gives the upright picture.
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright, 1),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WEBP" else {"quality": 100} if kind == "JPEG" else {}
    data = encoded(Image.fromarray(np.ascontiguousarray(stored)), kind, exif=exif, **options)
    result = np.asarray(read_image(data)).astype(int)
    assert result.shape == upright.shape
    assert np.abs(result - upright).mean() < (30 if kind == "JPEG" else 1)


def test_one_bit_and_grey():
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert np.array_equal(grey(Image.fromarray(ramp)), ramp)
    assert np.array_equal(grey(encoded(Image.fromarray(ramp))), ramp)
    assert np.array_equal(grey(Image.fromarray(ramp > 127)), (ramp > 127) * 255)


def test_16_bit_png():
    for high in (65535, 30000, 5000):  # a dim picture stays dim
        ramp = np.linspace(0, high, 256).reshape(16, 16).astype(np.uint16)
        result = grey(encoded(Image.fromarray(ramp)))
        assert np.abs(result - ramp / 257).max() <= 0.5


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [(np.int32, 0, 255), (np.int32, 0, 65535), (np.int32, -1000, 70000), (np.float32, 0, 1), (np.float32, 0, 255),
     (np.float32, -1, 0)],
)  # fmt: skip
def test_deep_greys_use_the_whole_range(dtype: type, low: float, high: float):
    values = np.linspace(low, high, 256).reshape(16, 16).astype(dtype)
    result = grey(encoded(Image.fromarray(values), "TIFF"))
    assert np.abs(result.ravel() - np.arange(256)).max() <= 1


def test_not_a_number_is_refused():
    assert "NaN" in sentence(Image.fromarray(np.full((4, 4), np.nan, dtype=np.float32)))


def test_cmyk_jpeg():
    data = encoded(picture(64, 64).convert("CMYK"), "JPEG", quality=95)
    corners = np.asarray(read_image(data)).astype(int)[[8, 8, 56, 56], [8, 56, 8, 56]]
    assert np.abs(corners - [RED, GREEN, BLUE, WHITE]).max() < 40


@pytest.mark.parametrize("mode", ["La", "RGBa"])
def test_colours_times_opacity_are_over_white_like_others(mode: str):
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16)
    given = Image.merge("LA", [Image.fromarray(ramp), Image.fromarray(ramp.T.copy())]).convert(mode[:-1] + "A")
    assert np.abs(grey(given.convert(mode)).astype(int) - grey(given)).max() <= 2


def test_lab():
    lab = ImageCms.profileToProfile(
        picture(), ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
    )
    assert read_image(lab).mode == "RGB"


def test_transparency_lies_over_white():
    pixels = np.zeros((4, 6, 4), dtype=np.uint8)
    pixels[:, 2:4] = (200, 0, 0, 128)
    pixels[:, 4:] = (0, 0, 200, 255)
    expected = np.full((4, 6, 3), 255)
    expected[:, 2:4] = (227, 127, 127)  # 200 * 128 / 255 + 255 * 127 / 255
    expected[:, 4:] = (0, 0, 200)
    for source in (pixels, Image.fromarray(pixels), encoded(Image.fromarray(pixels))):
        assert np.abs(np.asarray(read_image(source)).astype(int) - expected).max() <= 1
    faded = Image.new("LA", (4, 4), (0, 0))
    assert (grey(encoded(faded)) == 255).all()


def test_palette_with_transparency():
    image = Image.new("P", (4, 4), 0)
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putpixel((0, 0), 1)
    result = np.asarray(read_image(encoded(image, transparency=0)))
    assert tuple(result[0, 0]) == (200, 100, 50)
    assert (result.reshape(-1, 3)[1:] == 255).all()


def test_first_frame_of_animations():
    frames = [Image.new("RGB", (8, 8), colour) for colour in (RED, GREEN, BLUE)]
    for kind, options in (("GIF", {}), ("PNG", {}), ("WEBP", {"lossless": True})):
        data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
        assert (np.asarray(read_image(data)) == RED).all()


def test_arrays():
    values = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert np.array_equal(read_image(values), values)
    assert np.array_equal(read_image(values[::-1, ::2]), values[::-1, ::2])
    assert np.array_equal(grey(values[..., 0]), values[..., 0])


@pytest.mark.parametrize("shape", [(28,), (1, 28, 28), (28, 28, 1), (28, 28, 2), (1, 28, 28, 3), (0, 28), (28, 0, 3)])
def test_arrays_of_other_shapes_are_refused(shape: tuple[int, ...]):
    sentence(np.zeros(shape, dtype=np.uint8))


@pytest.mark.parametrize("dtype", [np.int64, np.uint16, np.bool_, np.complex64, object])
def test_arrays_of_other_types_are_refused(dtype: type):
    assert "uint8, or float from 0 to 1" in sentence(np.full((28, 28), 0, dtype=dtype))


@pytest.mark.parametrize("size", [(4096, 1024), (1000, 5000), (3000, 1)])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_large_pictures_are_bounded(size: tuple[int, int], kind: str):
    result = read_image(encoded(Image.new("RGB", size, RED), kind))
    assert max(result.size) == MAX_SIDE
    assert result.size == tuple(max(1, round(side * MAX_SIDE / max(size))) for side in size)
    assert np.abs(np.asarray(result).astype(int) - RED).max() < 4


def png(width: int, height: int, rows: int) -> bytes:
    """A valid 1-bit PNG of `width` x `height`, of which only `rows` rows are made."""

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = zlib.compress(bytes((1 + (width + 7) // 8) * rows), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("width", "height"), [(20_000, 20_000), (10_001, 10_000), (100_000, 100_000)])
def test_huge_pictures_are_refused_before_decoding(width: int, height: int):
    data = png(width, height, rows=100)  # what is decoded would be refused as damaged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "million pixels" in sentence(data)


def test_pictures_just_below_the_limit_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_image(png(9_500, 10_000, 10_000)).size == (1946, 2048)


def test_huge_arrays_and_images_are_refused():
    assert "million pixels" in sentence(np.broadcast_to(np.uint8(0), (20_000, 20_000)))


def test_large_files_are_refused(tmp_path):
    assert "MB" in sentence(bytes(MAX_PICTURE_BYTES + 1))
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(MAX_PICTURE_BYTES + 1)
    assert "MB" in sentence(tmp_path / "large.png")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "AVIF"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.8])
def test_truncated_files_are_refused(kind: str, share: float):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(noise), kind)
    if kind == "TIFF":  # its directory may stand at the end, so cut the start of the pixels out as well
        data = data[:8] + data[200:]
    sentence(data[: int(len(data) * share)])


def test_an_open_but_damaged_image_is_refused():
    data = encoded(picture(256, 256), "JPEG")
    assert "damaged" in sentence(Image.open(io.BytesIO(data[: len(data) // 2])))


def test_what_is_not_a_picture_is_refused(tmp_path):
    (tmp_path / "words.jpg").write_text("This is not a picture. " * 100)
    (tmp_path / "empty.png").touch()
    (tmp_path / "folder.png").mkdir()
    assert "PNG, JPEG or WebP" in sentence(tmp_path / "words.jpg")
    assert "empty" in sentence(tmp_path / "empty.png")
    assert "folder" in sentence(tmp_path / "folder.png")
    assert "missing" in sentence(tmp_path / "nowhere.png")
    sentence("a\0b")
    sentence("x" * 10_000)
    sentence("")
    for source in (None, 3, [[0, 1]]):
        sentence(source)


def test_formats_that_start_other_programs_are_refused():
    assert "PNG, JPEG or WebP" in sentence(encoded(picture(), "EPS"))
