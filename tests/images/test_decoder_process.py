"""Two decoding processes at a time, bound by the kernel; however it ends, there is a picture or one sentence."""

import pytest
from PIL import Image

from vit_demo.errors import ImageError
from vit_demo.images import decode_drawing, decode_image, read_image, reading
from vit_demo.images.decoder import NOT_A_PICTURE, TOO_COMPLEX
from vit_demo.images.rgb import DAMAGED

from ..asynchronous import a_moment, at_once

PNG_URL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


def test_two_pictures_are_decoded_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path):
    running, most = 0, 0

    def decode(data: bytes) -> Image.Image:
        nonlocal running, most
        running += 1
        most = max(most, running)
        a_moment()
        running -= 1
        return Image.new("RGB", (1, 1))

    monkeypatch.setattr(reading, "decode_in_process", decode)
    (tmp_path / "picture").write_bytes(b"any")
    jobs = [lambda: decode_image(b"any"), lambda: read_image(b"any"), lambda: read_image(tmp_path / "picture")] * 2
    at_once(*jobs)
    assert most == 2


def test_waiting_ends_with_a_message_and_drawings_do_not_wait(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "MAX_WAIT_SECONDS", 0.05)
    with reading.decoding_slot(), reading.decoding_slot():
        with pytest.raises(ImageError, match=r"^Too many pictures .* try again in a few seconds\.$"):
            decode_image(b"any")
        assert decode_drawing(PNG_URL).size == (1, 1)
    with pytest.raises(ImageError, match=NOT_A_PICTURE):  # the turn comes again
        decode_image(b"any")
    slots = [reading.decoding_slot(drawing=True) for _ in range(2)]
    with slots[0], slots[1], pytest.raises(ImageError, match="try again"):
        decode_drawing(PNG_URL)


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("import os; os.abort()", DAMAGED),
        ("raise SystemExit(3)", DAMAGED),
        ("print('pixels 100000 100000')", DAMAGED),
        ("print('pixels 2 2')\nprint('too few')", DAMAGED),
        ("", DAMAGED),
        ("import time; time.sleep(60)", TOO_COMPLEX),
        (
            "from vit_demo.images import decoder\ndecoder.decode = lambda data: bytearray(10**9)\ndecoder.main()",
            TOO_COMPLEX,
        ),
        (
            "from vit_demo.images import decoder as d\nd._set_resource_limits(0.5)\nwhile 1: 0",
            TOO_COMPLEX,
        ),
    ],
    ids=["crash", "exit", "size", "short", "silent", "hangs", "memory", "spins"],
)
def test_every_end_of_the_process_has_a_message(program: str, sentence: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "MAX_DECODE_SECONDS", 1.0 if "sleep" in program else 30.0)
    start = reading._START.partition("from vit_demo")[0]
    monkeypatch.setattr(reading, "_START", start + program)
    with pytest.raises(ImageError) as caught:
        decode_image(b"any")
    assert str(caught.value) == sentence


def test_the_process_gets_no_secrets(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    program = "import os, sys\nsys.stdout.write('refused ' + ' '.join(sorted(os.environ)))"
    monkeypatch.setattr(reading, "_START", program)
    with pytest.raises(ImageError) as caught:
        decode_image(b"any")
    assert "PYTHONPATH" in str(caught.value) and "HF_TOKEN" not in str(caught.value)


def test_the_process_does_not_import_torch(monkeypatch: pytest.MonkeyPatch):
    loaded = reading._START.replace("main()\n", "sys.stdout.write('refused ' + str('torch' in sys.modules))")
    monkeypatch.setattr(reading, "_START", loaded)
    with pytest.raises(ImageError, match="False"):
        decode_image(b"any")
