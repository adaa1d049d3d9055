"""Files as cameras, scanners, microscopes and phones write them give the pixels that their definitions say."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from vit_demo.errors import ImageError
from vit_demo.images import decode_image, read_image, reading
from vit_demo.images.decoder import decode

from . import bombs
from . import odd_files as odd

GREY = np.random.default_rng(0).integers(0, 4096, (24, 32)).astype(np.uint16)  # 12 bits
GREY[0, :2] = 0, 4095
COLOURS = np.random.default_rng(1).integers(0, 4096, (24, 32, 3)).astype(np.uint16)
COLOURS[0, 0], COLOURS[0, 1] = 0, 4095

WHITE_XYZ = np.array([0.9642, 1.0, 0.8249])  # D50, the white of all profiles
SRGB = np.array([[0.43607, 0.38515, 0.14307], [0.22249, 0.71687, 0.06061], [0.01392, 0.09708, 0.7141]])
DISPLAY_P3 = np.array([[0.51512, 0.29198, 0.1571], [0.2412, 0.69225, 0.06657], [-0.00105, 0.04189, 0.78407]])


def levels(values: NDArray, white: int) -> NDArray[np.float64]:
    """Values from 0 to white as 0 to 255."""
    return np.asarray(values, np.float64) * 255 / white


def linear(values: NDArray) -> NDArray[np.float64]:
    """The light of sRGB's values from 0 to 1, by its definition."""
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def encoded_srgb(light: NDArray) -> NDArray[np.float64]:
    light = light.clip(0, 1)
    return 255 * np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


def p3_profile() -> bytes:
    curve = odd.curve(linear(np.linspace(0, 1, 1024)))
    tags = {name: odd.xyz(*DISPLAY_P3[:, i]) for i, name in enumerate((b"rXYZ", b"gXYZ", b"bXYZ"))}
    return odd.icc_profile(b"RGB ", tags | dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), curve))


def p3_pixels() -> NDArray[np.uint8]:
    """Colours within sRGB, so that none is clipped."""
    return np.random.default_rng(2).integers(70, 186, (24, 32, 3)).astype(np.uint8)


def p3_in_srgb() -> NDArray[np.float64]:
    return encoded_srgb(linear(p3_pixels() / 255) @ (np.linalg.inv(SRGB) @ DISPLAY_P3).T)


def ordinary_jpeg() -> bytes:
    smooth = Image.fromarray(p3_pixels()).resize((90, 70), Image.Resampling.BICUBIC)
    return bombs.encoded(smooth, "JPEG", quality=90)


def pillow_pixels(data: bytes) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(data)))


def unused_alpha() -> NDArray[np.uint8]:
    return np.dstack([p3_pixels(), np.zeros((24, 32), np.uint8)])


FILES: dict[str, Callable[[], tuple[bytes, NDArray]]] = {
    "12 bits in a PNG of 16": lambda: (odd.png(GREY), levels(GREY, 4095)),
    "8 bits in a PNG of 16": lambda: (odd.png(GREY >> 4), GREY >> 4),
    "12 bits in a TIFF of 16": lambda: (odd.tiff(GREY), levels(GREY, 4095)),
    "8 bits in a TIFF of 16, other byte order": lambda: (odd.tiff(GREY >> 4, order=">"), GREY >> 4),
    "12-bit colours in a PNG of 16": lambda: (odd.png(COLOURS), levels(COLOURS, 4095)),
    "8-bit colours in a PNG of 16": lambda: (odd.png(COLOURS >> 4), COLOURS >> 4),
    "12-bit colours in a TIFF of 16": lambda: (odd.tiff(COLOURS, order=">"), levels(COLOURS, 4095)),
    "8-bit colours in a TIFF of 16, compressed": lambda: (odd.tiff(COLOURS >> 4, deflate=True), COLOURS >> 4),
    "16 bits, 0 is white": lambda: (odd.tiff(GREY * 16, photometric=0), 255 - levels(GREY * 16, 65535)),
    "12 bits, 0 is white": lambda: (odd.tiff(GREY, photometric=0), 255 - levels(GREY, 4095)),
    "32 bits without sign": lambda: (odd.tiff(GREY.astype(np.uint32) << 20), levels(GREY.astype(float) * 2**20, 2**32)),
    "32 bits without sign that hold 12": lambda: (odd.tiff(GREY.astype(np.uint32)), levels(GREY, 4095)),
    "Display P3": lambda: (bombs.encoded(Image.fromarray(p3_pixels()), icc_profile=p3_profile()), p3_in_srgb()),
    "grey of gamma 1": lambda: (
        bombs.encoded(
            Image.fromarray(p3_pixels()[..., 0]),
            icc_profile=odd.icc_profile(b"GRAY", {b"kTRC": odd.curve(np.array([1.0]))}),
        ),
        encoded_srgb(p3_pixels()[..., 0] / 255),
    ),
    "a JPEG without its last two bytes": lambda: (ordinary_jpeg()[:-2], pillow_pixels(ordinary_jpeg())),
    "a JPEG without its last byte": lambda: (ordinary_jpeg()[:-1], pillow_pixels(ordinary_jpeg())),
    "a BMP whose opacity is unused": lambda: (odd.bmp(unused_alpha()), p3_pixels()),
}


@pytest.mark.parametrize("name", FILES)
def test_the_pixels_are_those_of_the_definition(name: str):
    data, expected = FILES[name]()
    expected = np.repeat(expected[..., None], 3, 2) if expected.ndim == 2 else expected
    tolerance = 1.5 if "P3" in name or "gamma" in name else 0.51
    assert np.abs(np.asarray(decode(data)).astype(float) - expected).max() <= tolerance


def test_opacity_counts_where_a_bmp_uses_it():
    pixels = unused_alpha()
    pixels[0, 0, 3] = 255
    result = np.asarray(decode(odd.bmp(pixels)))
    assert np.array_equal(result[0, 0], pixels[0, 0, :3]) and (result[1:] == 255).all()


def test_opacity_of_16_bits_is_kept_with_colours_of_12():
    opacity = np.where(np.arange(32) < 16, 65535, 0)[None].repeat(24, 0).astype(np.uint16)
    result = np.asarray(decode(odd.png(np.dstack([COLOURS, opacity]))))
    assert np.abs(result[:, :16] - levels(COLOURS, 4095)[:, :16]).max() <= 0.51 and (result[:, 16:] == 255).all()


def test_bright_pictures_of_16_bits_are_as_before():
    for pixels in (GREY * 16, COLOURS * 16):
        expected = levels(pixels, 65535)
        result = np.asarray(decode(odd.png(pixels))).astype(float)
        result = result[..., 0] if pixels.ndim == 2 else result
        assert np.abs(result - expected).max() <= (0.51 if pixels.ndim == 2 else 1)  # Pillow keeps the high byte


def test_a_profile_that_changes_only_the_rounding_changes_nothing():
    tags = {name: odd.xyz(*SRGB[:, i]) for i, name in enumerate((b"rXYZ", b"gXYZ", b"bXYZ"))}
    curve = odd.curve(linear(np.linspace(0, 1, 1024)))
    profile = odd.icc_profile(b"RGB ", tags | dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), curve))
    noise = np.random.default_rng(3).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    assert np.array_equal(np.asarray(decode(bombs.encoded(Image.fromarray(noise), icc_profile=profile))), noise)


@pytest.mark.parametrize("profile", [b"", b"any", p3_profile()[:300], bytes(64) + p3_profile()[64:]])
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK", "RGBA", "P"])
def test_a_profile_that_does_not_fit_does_not_matter(profile: bytes, mode: str):
    picture = Image.fromarray(p3_pixels()).convert(mode)
    kind = "TIFF" if mode == "CMYK" else "PNG"
    grey = odd.icc_profile(b"GRAY", {b"kTRC": odd.curve(np.array([1.0]))})
    plain = np.asarray(decode(bombs.encoded(picture, kind)))
    for given in (profile, grey if mode != "L" else b"any"):
        assert np.array_equal(np.asarray(decode(bombs.encoded(picture, kind, icc_profile=given))), plain)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_blocks": 2}, {"subsampling": 2}])
def test_a_jpeg_that_lacks_more_than_its_last_marker_is_refused(options: dict):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    whole = bombs.encoded(Image.fromarray(noise), "JPEG", **options)
    assert np.array_equal(np.asarray(decode(whole[:-2])), pillow_pixels(whole))
    for missing in (4, 8, 12, 40, 400):
        with pytest.raises(ImageError, match="damaged"):
            decode(whole[:-missing])


def test_the_orientation_of_an_incomplete_jpeg_is_applied_once():
    exif = Image.Exif()
    exif[0x0112] = 6
    whole = bombs.encoded(Image.fromarray(p3_pixels()), "JPEG", exif=exif, icc_profile=p3_profile())
    assert np.array_equal(np.asarray(decode(whole[:-2])), np.asarray(decode(whole)))


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "I;16"])
def test_colours_and_orientation_of_one_file_are_both_converted(mode: str):
    exif = Image.Exif()
    exif[0x0112] = 6
    profile = None if mode in ("L", "I;16") else p3_profile()
    picture = Image.fromarray(p3_pixels() if profile else GREY * 16)
    plain, turned = (
        bombs.encoded(picture if mode in ("I;16", "RGB") else picture.convert(mode), exif=one, icc_profile=profile)
        for one in (Image.Exif(), exif)
    )
    assert np.array_equal(np.asarray(decode(turned)), np.rot90(np.asarray(decode(plain)), -1))


def test_a_phones_heic_of_48_megapixels_is_read_within_the_limits():
    """In the decoding process, whose memory and time are limited."""
    result = np.asarray(decode_image(odd.heic_grid(8064, 6048))).astype(int)
    assert result.shape == (1536, 2048, 3)
    tile = 512 * 2048 / 8064
    for row, column in ((0, 0), (5, 11), (11, 15)):
        middle = [round((row + 0.25) * tile), round((column + 0.25) * tile)]
        assert np.abs(result[middle[0], middle[1]] - [255, 0, 0]).max() <= 3
        assert np.abs(result[middle[0], middle[1] + round(tile / 2) - 1] - [0, 255, 0]).max() <= 3 or column == 15
    with pytest.raises(ImageError, match="more than 50 million pixels"):
        decode_image(odd.heic_grid(8192, 6144))


def test_float_arrays_are_from_0_to_1():
    values = np.random.default_rng(0).random((9, 8, 4))
    values[..., 3] = 1
    for given in (values, values[..., :3].astype(np.float32), values[..., 0], values[..., :3].astype(np.float16)):
        result = np.asarray(read_image(given)).astype(float)
        expected = 255 * np.asarray(given, np.float64)
        expected = np.repeat(expected[..., None], 3, 2) if expected.ndim == 2 else expected[..., :3]
        assert np.abs(result - expected).max() <= 0.51
    for wrong in (255 * values, -values, np.full((9, 8), np.nan), np.full((9, 8), np.inf)):
        with pytest.raises(ImageError, match=r"^An array must be uint8, or float from 0 to 1, of shape [^.]+\.$"):
            read_image(wrong)


def test_what_the_process_is_told_of_memory_is_little():
    assert reading._environment()["MALLOC_ARENA_MAX"] == "1"
