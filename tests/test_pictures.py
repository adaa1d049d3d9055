"""The pictures of the page show the page that is there, and every picture of the documents is used."""

import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from scripts.screenshot import COLOURS, PICTURES, ROOT, TEXTS, digest_of, page_digest, save

AGAIN = "the page's texts or styles have changed since: run `python -m scripts.screenshot`, and look at the pictures"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_page_is_up_to_date(name: str) -> None:
    assert digest_of(ROOT / name) == page_digest(), AGAIN
    assert Image.open(ROOT / name).size == PICTURES[name]


def test_the_digest_changes_with_texts_styles_and_colours_but_not_with_spaces(tmp_path: Path) -> None:
    frontend = Path("vit_demo/web/frontend")
    styles = sorted(path.relative_to(ROOT) for path in (ROOT / frontend).rglob("*.css"))
    assert len(styles) > 10
    for name in (*map(str, styles), str(frontend / "stage/stage.html"), TEXTS, *COLOURS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    digest = page_digest(tmp_path)
    for name, old, new in (
        (TEXTS, '"Clear"', '"Cleared"'),
        (str(styles[0]), "{", "{ color: red;"),
        (str(frontend / "stage/stage.html"), "Opacity", "Strength"),
        (COLOURS[0], "#", "#0"),
    ):
        text = (tmp_path / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace(old, new), encoding="utf-8")
        assert page_digest(tmp_path) != digest, name
        (tmp_path / name).write_text(f"\n{text}  ", encoding="utf-8")
        assert page_digest(tmp_path) == digest, name
    commented = tmp_path / styles[0]
    commented.write_text(f"/* A remark. */\n{commented.read_text(encoding='utf-8')}", encoding="utf-8")
    assert page_digest(tmp_path) == digest


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_a_picture_holds_its_digest(tmp_path: Path, suffix: str) -> None:
    Image.effect_noise((30, 20), 90).save(tmp_path / "plain.png")
    assert digest_of(tmp_path / "plain.png") == ""
    save((tmp_path / "plain.png").read_bytes(), tmp_path / f"saved{suffix}", "0123abcd")
    assert digest_of(tmp_path / f"saved{suffix}") == "0123abcd"


def test_every_picture_of_the_documents_is_used() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.ipynb"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    documents = "".join((ROOT / name).read_text(encoding="utf-8") for name in listed.stdout.split())
    unused = [path.name for path in (ROOT / "docs/images").iterdir() if f"images/{path.name}" not in documents]
    assert not unused
