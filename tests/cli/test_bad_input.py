"""What a shell may hand over: empty names, names that are no text, settings that are no numbers, missing folders."""

import os
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TextIO

import pytest
from PIL import Image

import vit_demo
from vit_demo.cli import main
from vit_demo.cli.output import print_lines
from vit_demo.web.catalog.example_digits import example_picture


def test_an_empty_name_is_not_the_working_folder(tmp_path, monkeypatch, capsys):
    example_picture(3).save(tmp_path / "three.png")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "", "--preset", "digits-tiny"]) == 2
    assert capsys.readouterr().err == (
        "vit_demo: The name of a picture is empty: give a file, a folder or a pattern.\n"
    )
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="file names are text here")
def test_a_name_that_is_no_text_is_reported_all_the_same(tmp_path, capsys):
    name = os.fsdecode(os.fsencode(str(tmp_path)) + b"/inv\xff.png")
    example_picture(3).save(name, "PNG")
    out = tmp_path / "report.html"
    assert main(["explain", name, "--preset", "digits-tiny", "--html", str(out)]) == 0
    assert "inv\\udcff.png" in out.read_text(encoding="utf-8")


def test_one_file_under_two_names_is_explained_once(tmp_path, monkeypatch, capsys):
    example_picture(3).save(tmp_path / "a.png")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "a.png", "./a.png", "--preset", "digits-tiny", "--json"]) == 0
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize("port", ["abc", "-5", "7860.0"])
def test_a_port_in_the_environment_is_a_number(port, monkeypatch, capsys):
    monkeypatch.setenv("GRADIO_SERVER_PORT", port)
    assert main(["serve"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"GRADIO_SERVER_PORT is '{port}': set it to a number" in error


@pytest.mark.parametrize(
    "arguments", [["--host", "203.0.113.7"], ["--host", "203.0.113.7", "--port", "7999"], ["--host", "é" * 70]]
)
def test_an_address_that_is_none_of_this_machine_gets_a_sentence(arguments, capsys):
    assert main(["serve", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "choose one of this machine" in error


def closed(mode: str = "w") -> TextIO:
    """A pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, mode)


@pytest.mark.skipif(sys.platform != "linux", reason="shells differ")
@pytest.mark.parametrize(
    ("end", "code", "message"), [(">/dev/full", 2, "cannot be written (No space left on device)"), ("| true", 0, "")]
)
def test_a_program_ends_whatever_takes_its_output(end, code, message):
    line = f"set -o pipefail; {sys.executable} -m vit_demo presets {end}"  # which starts quickly
    root = Path(vit_demo.__file__).parents[1]
    done = subprocess.run(["bash", "-c", line], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="has no /dev/full")
@pytest.mark.parametrize(
    ("stream", "output", "code", "out", "written"),
    [
        ("stdout", Path("/dev/full").open, 2, "--html=a.html", ""),
        ("stdout", closed, 0, "--out=made", "made/3-input.png"),
        ("stderr", lambda _: None, 0, "--html=a.html", "a.html"),
    ],
    ids=["full disk", "nobody reads it", "no standard error"],
)
def test_an_output_that_cannot_be_written(stream, output, code, out, written, tmp_path, monkeypatch, capsys):
    for name in ("three.png", "3.png"):
        example_picture(3).rotate(0 if name == "3.png" else 5).save(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"sys.{stream}", output("w"))
    assert main(["explain", "three.png", "3.png", "--preset", "digits-tiny", out]) == code
    assert ("cannot be written" in capsys.readouterr().err) == (code == 2)
    assert Path(written).exists()


def test_a_closed_pipe_ends_a_program_that_has_nothing_else_to_do(monkeypatch):
    with closed() as out, closed() as error:
        monkeypatch.setattr("sys.stdout", out)
        print_lines("one", more_to_do=True)
        print_lines("two")  # the pipe is gone for good, and nothing fails
        print_lines("three", file=error)
    with closed() as out:
        monkeypatch.setattr("sys.stdout", out)
        with pytest.raises(SystemExit) as stop:
            print_lines("one")
        assert stop.value.code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
def test_a_pattern_ends_although_its_folders_hold_each_other(tmp_path, monkeypatch, capsys):
    inside = tmp_path / "g" / "one"
    inside.mkdir(parents=True)
    example_picture(3).save(inside / "three.png")
    for name in ("a", "b", "c"):  # with links followed, 3 to the power of 40 folders
        (inside / name).symlink_to(tmp_path / "g", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "g/**/*.png", "--preset", "digits-tiny", "--json"]) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_a_pattern_that_matches_too_many_files_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("vit_demo.cli.pictures.MOST_MATCHES", 3)
    for number in range(5):
        (tmp_path / f"{number}.png").touch()
    assert main(["explain", str(tmp_path / "*.png"), "--preset", "digits-tiny"]) == 2
    assert "More than 3 files match" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="such names are refused there")
def test_no_escape_sequence_of_a_file_name_reaches_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ["\x1b]0;title\x07.png", "\x9b31m.png", "a\nfile.png", "a\rline\t.png"]
    (tmp_path / names[0]).write_bytes(b"no picture")
    for name in names[1:]:
        example_picture(3).save(name)
    main(["explain", *names, "--preset", "digits-tiny"])
    output = capsys.readouterr()
    shown = output.out + output.err
    assert r"\x1b]0;title\x07" in shown and r"\x9b31m" in shown
    assert not {"\x1b", "\x07", "\x9b", "\r", "\t"} & set(shown)
    assert r"a\x0afile.png" in shown and "\nfile.png" not in shown
    assert main(["explain", "no\nsuch.png", "--preset", "digits-tiny"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        ["explain", "--preset", "digits-tiny", "--patch-size", "14", "--out", "out"],
        ["explain", "--preset", "digits-tiny", "--patch-size", "14", "--json"],
        ["gallery", "--preset", "digits-tiny", "--patch-size", "14", "--out", "out"],
    ],
    ids=" ".join,
)
def test_pictures_may_have_any_names(tmp_path, monkeypatch, command):
    digit = Image.new("L", (28, 28), 255)
    digit.paste(0, (12, 4, 15, 24))
    (tmp_path / "pictures").mkdir()
    for name in (b"k\xe4se.png", b"\xff\xfe.png", "a\u202eb.png".encode(), b"=1\n.png"):
        digit.save(tmp_path / "digit.png")
        (tmp_path / "digit.png").rename(tmp_path / "pictures" / os.fsdecode(name))
    monkeypatch.chdir(tmp_path)
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}", TextIOWrapper(BytesIO(), encoding="utf-8", errors="strict"))
    assert main([command[0], "pictures", *command[1:]]) == 0
    sys.stdout.flush()
    assert sys.stdout.buffer.getvalue().decode()
