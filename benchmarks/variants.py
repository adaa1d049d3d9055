"""Networks, folders and photos as people have them: each is right, said, or refused; never another without a word.

    python -m benchmarks variants
    python -m benchmarks variants --families outputs names --all

What is right is what the caller's own code gives: a plain call of the network on pixels of the library's own transform
or processor. Probabilities must be the same within 1e-4, and where tokens are concerned the attention of a patch and
relevance, too: of explicit matrices, at the squares whose pixels move each token. Ends with exit code 1 if a variant
is another without a word, or fails in another way than by one sentence.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from timm.data import create_transform
from torch import Tensor, nn

from benchmarks.variants_attention import EXACT, SPELLINGS
from benchmarks.variants_check import CAT, NOISE, DifferentError, Work, explicit, raw, same, seeded, written_out
from benchmarks.variants_files import configs, names, photos, processors
from benchmarks.variants_libraries import THEIRS
from benchmarks.variants_networks import LAYOUTS, MEAN, NORMALISED, OUTPUTS, STD, WRAPPERS, Vit, soft
from vit_demo.errors import InputError


def wrappers() -> Iterator[tuple[str, Work]]:
    """What a network does to its pixels: a photo becomes what the caller's own code gives it."""

    def work(change: Callable[[Tensor], Tensor], scale: float) -> str:
        module = seeded(partial(Vit, change))
        x = (
            scale * raw(CAT)
            if scale
            else create_transform(32, crop_pct=1, mean=MEAN, std=STD, interpolation="bicubic")(CAT)[None]
        )
        with torch.no_grad():
            expected = soft(module(x.permute(0, 2, 3, 1) if change(x).shape[1] != 3 else x))[0]
        return same(CAT, module, expected, x, partial(written_out, module, 0.0))

    for name, (change, scale) in WRAPPERS.items():
        yield name, partial(work, change, scale)


def outputs() -> Iterator[tuple[str, Work]]:
    """What a network returns."""

    def work(put: Callable[..., Any], read: Callable[[Any], Tensor]) -> str:
        module = seeded(partial(Vit, put=put))
        with torch.no_grad():
            expected = read(module(NOISE))
        if not isinstance(expected, Tensor) or expected.dim() != 2:
            expected = torch.empty(1, 0)  # it gives no probabilities, so none may be shown
        return same(NOISE, module, expected[0])

    for name, (put, read) in OUTPUTS.items():
        yield name, partial(work, put, read)


def layouts() -> Iterator[tuple[str, Work]]:
    """Where tokens are and what the head reads of them."""

    def work(make: Callable[[], nn.Module], run: Callable[..., Any], at_once: int = 1) -> str:
        module = seeded(make)
        with torch.no_grad():
            output = module(NOISE)
        expected = soft(output if isinstance(output, Tensor) else output.logits)[0]
        return same(NOISE, module, expected, NOISE, partial(run, module), at_once)

    for name, options in LAYOUTS.items():
        yield name, partial(work, partial(Vit, **options), lambda module, x: written_out(module, 0.0, x))
    for name, make in THEIRS.items():
        yield name, partial(work, make, explicit, 2 if name in ("timm, two branches", "vit-pytorch, parallel") else 1)


def spellings() -> Iterator[tuple[str, Work]]:
    """How attention is written."""

    def work(attend: Any, bias: str) -> str:
        module = seeded(partial(Vit, attend=attend))
        with torch.no_grad():
            expected = soft(module(NOISE))[0]
        return same(NOISE, module, expected, NOISE, partial(written_out, module, EXACT.get(bias, 0.0)))

    for name, (attend, bias) in SPELLINGS.items():
        yield name, partial(work, attend, bias)


def combined(count: int = 60) -> Iterator[tuple[str, Work]]:
    """Some of all at once."""
    choose = np.random.default_rng(0)
    plain = {name: attend for name, (attend, bias) in SPELLINGS.items() if not bias}
    tables: dict[str, dict[str, Any]] = {
        "wrappers": WRAPPERS,
        "outputs": OUTPUTS,
        "layouts": LAYOUTS,
        "spellings": plain,
    }

    def work(change: Any, scale: float, put: Any, read: Any, layout: Any, attend: Any) -> str:
        module = seeded(partial(Vit, **{"before": change} | layout, put=put, attend=attend))
        x = scale * raw(CAT)
        with torch.no_grad():
            expected = read(module(x))
        return same(CAT, module, expected[0])

    for _ in range(count):
        keys = [
            str(choose.choice([name for name in table if (family, name) not in REFUSED]))
            for family, table in tables.items()
        ]
        (change, scale), (put, read) = WRAPPERS[keys[0]], OUTPUTS[keys[1]]
        if scale != NORMALISED:
            yield " + ".join(keys), partial(work, change, scale, put, read, LAYOUTS[keys[2]], plain[keys[3]])


REFUSED = set[tuple[str, str]]()
"""Families and variants that were refused alone."""
FAMILIES = {
    one.__name__: one for one in (wrappers, outputs, layouts, spellings, combined, processors, configs, names, photos)
}


def outcome(work: Work) -> tuple[str, str]:
    """What came of a variant, and what there is to say of it."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        try:
            said = work()
        except DifferentError as error:
            return "different", str(error)
        except InputError as error:
            text = str(error)
            is_sentence = text.endswith(".") and text.isprintable() and len(text) < 400
            return "refused" if is_sentence else "no sentence", text
        except Exception as error:
            return "failed", f"{type(error).__name__}: {error}"
    said = said or " ".join(
        str(one.message) for one in warned if "vit_demo" in one.filename or one.filename == __file__
    )
    return ("said", said) if said else ("equal", "")


def main() -> None:
    """Prints how many variants of each family are equal, said and refused, and each that is none of these."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--all", action="store_true", help="print what was said and why others were refused, too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    started, found = time.monotonic(), Counter[str]()
    for family in options.families:
        counts = Counter[str]()
        for name, work in FAMILIES[family]():
            came, text = outcome(work)
            counts[came] += 1
            if came == "refused":
                REFUSED.add((family, name))
            if options.all or came not in ("equal", "said", "refused"):
                print(f"{family}, {name}: {came}: {' '.join(text.split())[:300]}", flush=True)
        print(f"{family}: " + ", ".join(f"{count} {came}" for came, count in sorted(counts.items())), flush=True)
        found += counts
    print(f"{found.total()} variants in {time.monotonic() - started:.0f} s: {dict(sorted(found.items()))}")
    sys.exit(bool(found.keys() - {"equal", "said", "refused"}))


if __name__ == "__main__":
    main()
