"""Heads, blocks, classes and units that are not there, or are named twice: one sentence says what to do."""

import pytest
import torch

import vit_demo
from vit_demo.errors import InputError, PresetError

from ..trace.networks import own, timm_vit
from .libraries import SQUARE

BAD = {
    "a block that is not there": ({"heads": [(3, 0)]}, "no block 3"),
    "a head that is not there": ({"heads": [(0, 3)]}, "no head 3"),
    "a head from the end": ({"heads": [(0, -1)]}, "no head -1"),
    "ten thousand": ({"heads": [(i, 0) for i in range(10_000)]}, "no block 3"),
    "an endless list": ({"heads": ((0, 0) for _ in iter(int, 1))}, "named twice"),
    "a double": ({"heads": [(1, 1), (1, 1)]}, "named twice"),
    "the same in two spellings": ({"heads": [(1, 1), (-2, 1)]}, "named twice"),
    "a block twice": ({"blocks": [0, -3]}, "named twice"),
    "one number": ({"heads": [1]}, "Heads are a list of .block, head."),
    "a text": ({"heads": "2.1"}, "Heads are a list of .block, head."),
    "no list": ({"blocks": 1}, "Give a list"),
    "a half": ({"mlps": [0.5]}, "whole number"),
    "a mask of torch": ({"heads": torch.ones(3, 2, dtype=torch.bool)}, "whole number"),
    "truth of torch": ({"blocks": [torch.tensor(True)]}, "whole number"),
    "one head, no list": ({"heads": (0, 1)}, "Heads are a list"),
    "truth": ({"heads": [(True, 0)]}, "whole number"),
    "another replacement, for nothing": ({"replace": "noise"}, "zero or mean"),
    "another replacement": ({"heads": [(0, 0)], "replace": "noise"}, "zero or mean"),
}


@pytest.mark.parametrize("given, message", BAD.values(), ids=BAD)
def test_bad_input_gets_one_sentence(given, message):
    ex = vit_demo.explore(SQUARE, own())
    with pytest.raises(InputError, match=message) as raised:
        ex.without(**given)
    assert len(str(raised.value)) < 200 and "\n" not in str(raised.value)


def test_other_bad_input_gets_one_sentence_too():
    ex = vit_demo.explore(SQUARE, own())
    for ask, message in (
        (lambda: ex.without(heads=[(0, 0)]).without(heads=[(0, 1)], replace="mean"), "use the same"),
        (lambda: ex.head_effects(unit="bits"), "no unit"),
        (lambda: ex.head_effects(batch_size=0), "batch_size"),
        (lambda: ex.head_effects("cat"), "no class"),
        (lambda: ex.head_effects(1, 1), "itself"),
        (lambda: ex.enough_heads(int(ex.logits.argmin())), "not the predicted class"),
        (lambda: ex.enough_heads(share=2), "share"),
        *((lambda share=share: ex.enough_heads(share=share), "share") for share in ("0.5", [0.5], 1j, float("nan"))),
        (lambda: ex.with_tokens(ex, 0, 5), "a list"),
        (lambda: ex.with_tokens(ex, 3), "no block 3"),
        (lambda: ex.with_tokens(ex, 0, [(9, 9)]), "no patch"),
        (lambda: ex.with_tokens(vit_demo.explore(SQUARE, timm_vit()()), 0), "use one model"),
        (lambda: ex.with_tokens("a lion", 0), "must be an Exploration"),
        (lambda: vit_demo.explore(SQUARE, own(), scores="none").head_effects(unit="log_probability"), "unit 'logit'"),
    ):
        with pytest.raises((InputError, PresetError), match=message):
            ask()
