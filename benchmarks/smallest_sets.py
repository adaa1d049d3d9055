"""How few patches are enough, and how few are needed, if the search follows the order of different maps.

Of a pretrained ViT-Ti/16 on photos, from a folder as in ``benchmarks.faithfulness``.

Example:
    $ python -m benchmarks smallest_sets --data PATH --count 100
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.attention import machine
from benchmarks.faithfulness import photos, pretrained, quick
from vit_demo.methods import attnlrp, libra_fullgrad, relevance
from vit_demo.metrics import PatchSet, necessary_set, sufficient_set
from vit_demo.trace import TracedViT

ORDERS: dict[str, Callable[[TracedViT, Tensor, int], Tensor]] = {
    "random": lambda model, images, target: torch.rand(1, 14, 14, generator=torch.Generator().manual_seed(0)),
    "relevance": relevance,
    "attnlrp": attnlrp,
    "libra_fullgrad": libra_fullgrad,
}
SEARCHES: dict[str, Callable[..., PatchSet | None]] = {"enough": sufficient_set, "needed": necessary_set}


def main() -> None:
    """Reads the command line, searches, prints Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks smallest_sets", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help="folder that holds weights and photos")
    parser.add_argument("--count", type=int, default=100, help="photos (%(default)s)")
    arguments = parser.parse_args()
    print(machine())
    model = pretrained(arguments.data)
    found: dict[tuple[str, str], list[PatchSet]] = {}
    for pixels in tqdm(photos(arguments.data, arguments.count), total=arguments.count, unit="photo", mininterval=20):
        with torch.inference_mode(), quick():
            target = int(model(pixels).argmax())
        for order, method in ORDERS.items():
            values = method(model, pixels, target)[0]
            for search, run in SEARCHES.items():
                with quick():
                    one = run(model, pixels, target, values)
                if one is not None:
                    found.setdefault((order, search), []).append(one)
    print(
        "| order | search | median patches | quartiles | minimal | passes |", "|---|---|---:|---:|---:|---:|", sep="\n"
    )
    for (order, search), sets in found.items():
        low, median, high = np.percentile([len(one.patches) for one in sets], [25, 50, 75])
        share = np.mean([one.is_minimal for one in sets])
        passes = np.mean([one.passes for one in sets])
        print(f"| {order} | {search} | {median:.0f} | {low:.0f} to {high:.0f} | {100 * share:.0f} % | {passes:.0f} |")


if __name__ == "__main__":
    main()
