"""Right answers of taught networks on pictures that they were not taught with, by the number of examples of each class.

Letters and symbols of twelve fonts, turned and sheared, as drawings; and groups of ImageNet's classes that the network
never learned, as photos. Shrinkage and temperature were chosen on others: ``--others`` measures these.

Example:
    $ python -m benchmarks teach --data PATH
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from tqdm import tqdm

from benchmarks.attention import machine
from vit_demo.inference.explainer import Explainer
from vit_demo.teaching.ridge import ridge
from vit_demo.trace.other_head import read_token

FONTS = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Italic", "DejaVuSansMono", "DejaVuSansMono-Oblique",
    "STIXGeneral", "STIXGeneralItalic", "cmr10", "cmss10", "cmti10", "cmtt10",
)  # fmt: skip
SYMBOLS = "ABCDEFGHJKLMNPRTUVWY+?&@#$%="
OTHER_SYMBOLS = "abcdefghijkmnpqrtuvwxy"

GROUPS = {
    "snakes": range(52, 69),
    "ships": (403, 472, 484, 510, 554, 625, 628, 724, 780, 814, 833, 871, 914),
    "instruments": (401, 402, 420, 432, 486, 494, 541, 546, 558, 577, 579, 593, 594, 641, 642, 683, 776, 822, 875, 889),
    "monkeys": range(365, 385),
    "wading birds": range(127, 142),
    "clothes": (411, 445, 459, 474, 501, 578, 601, 608, 610, 614, 617, 652, 655, 689, 697, 735, 775, 834, 841, 869),
}
OTHER_GROUPS = {
    "lizards": range(38, 51),
    "hoofed animals": range(339, 355),
    "songbirds": range(10, 22),
    "cars and trucks": (407, 436, 468, 511, 555, 573, 609, 627, 656, 661, 675, 717, 734, 751, 864, 867),
    "kitchenware": (412, 438, 463, 504, 567, 618, 647, 651, 659, 766, 813, 827, 891, 899, 909, 910),
    "buildings": (410, 424, 449, 483, 498, 538, 580, 624, 660, 663, 668, 698, 727, 743, 832, 873),
}
SIDE = 280

Tokens = dict[str, NDArray[np.float32]]
"""``[N, D]`` by class."""


def main() -> None:
    """Reads the command line, measures, prints Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks teach", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="PATH", help="folder with imagenet_samples; without it no photos")
    parser.add_argument("--draws", type=int, default=200, help="random choices of classes and examples (%(default)s)")
    parser.add_argument("--others", action="store_true", help="the pictures on which the regression was designed")
    arguments = parser.parse_args()
    print(machine(), "\n")
    symbols, groups = (OTHER_SYMBOLS, OTHER_GROUPS) if arguments.others else (SYMBOLS, GROUPS)
    drawings = read("digits-small", {symbol: list(drawn(symbol)) for symbol in symbols})
    rows = [("digits-small", "letters and symbols", drawings, 3), ("digits-small", "letters and symbols", drawings, 5)]
    if arguments.data:
        photos = read("photos-tiny", {name: photos_of(arguments.data, group) for name, group in groups.items()})
        rows += [("photos-tiny", "groups of ImageNet", photos, count) for count in (2, 3)]
    print("Right of other pictures, %, and in brackets how sure the network was of its answers, %\n")
    print("| network | pictures | classes | 3 examples each | 5 | 10 |", "|---|---|---:|---:|---:|---:|", sep="\n")
    for model, what, tokens, count in rows:
        cells = [
            "{:.1f} ({:.1f})".format(*(100 * measure(tokens, count, number, arguments.draws))) for number in (3, 5, 10)
        ]
        print(f"| `{model}` | {what} | {count} | {' | '.join(cells)} |")


def drawn(symbol: str) -> Iterator[Image.Image]:
    """A symbol of each font, turned by up to 15 degrees and sheared by up to a fifth."""
    chance = np.random.default_rng(ord(symbol))
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for name in FONTS:
        picture = Image.new("L", (SIDE, SIDE), 255)
        font = ImageFont.truetype(str(folder / f"{name}.ttf"), 150)
        ImageDraw.Draw(picture).text((SIDE / 2, SIDE / 2), symbol, fill=0, font=font, anchor="mm")
        turn, shear = chance.uniform(-15, 15), chance.uniform(-0.2, 0.2)
        turned = picture.rotate(turn, Image.Resampling.BICUBIC, fillcolor=255)
        moved = (1, shear, -shear * SIDE / 2, 0, 1, 0)
        yield turned.transform(turned.size, Image.Transform.AFFINE, moved, Image.Resampling.BICUBIC, fillcolor=255)


def photos_of(data: Path, classes: object) -> list[Path]:
    """One photo of each of some classes of ImageNet."""
    folder = data / "imagenet_samples"
    with (folder / "index.csv").open(encoding="utf-8") as file:
        files = {int(row["class_index"]): folder / "images" / row["file"] for row in csv.DictReader(file)}
    return [files[index] for index in classes]  # type: ignore[attr-defined]


def read(model: str, pictures: dict[str, list]) -> Tokens:
    """What the head of a network reads of each picture."""
    explainer = Explainer(model, device="cpu")
    return {
        name: np.stack([token(explainer, picture) for picture in group])
        for name, group in tqdm(pictures.items(), unit="class", mininterval=20)
    }


def token(explainer: Explainer, picture: object) -> NDArray[np.float32]:
    """What the head reads of one."""
    given, *_, run = explainer.prepare(picture, None)
    return run(read_token, given.pixels)[0].numpy()


def measure(tokens: Tokens, classes: int, examples: int, draws: int) -> NDArray[np.float64]:
    """The mean share of right answers, and of what the networks thought it was."""
    chance, found = np.random.default_rng(0), []
    for _ in range(draws):
        names = chance.choice(list(tokens), classes, replace=False)
        orders = [chance.permutation(len(tokens[name])) for name in names]
        seen = [tokens[name][order[:examples]] for name, order in zip(names, orders, strict=True)]
        others = [tokens[name][order[examples:]] for name, order in zip(names, orders, strict=True)]
        head = ridge(np.concatenate(seen).astype(np.float64), np.arange(classes).repeat(examples))
        logits = np.concatenate(others) @ head.weight.T + head.bias
        exponents = np.exp(logits - logits.max(1, keepdims=True))
        sure = (exponents / exponents.sum(1, keepdims=True)).max(1)
        right = logits.argmax(1) == np.arange(classes).repeat([len(other) for other in others])
        found.append((right.mean(), sure.mean()))
    return np.mean(found, 0)


if __name__ == "__main__":
    main()
