"""The section Build, as a visitor uses it: counts that follow the fields, sentences, and code that runs."""

import contextlib
import io
from dataclasses import replace

import pytest
import torch

from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import VIT_TINY
from vit_demo.weights import PRESETS

from .choosing import Locator, Page, open_page, open_section


@pytest.fixture
def build(opened: Page) -> Page:
    open_section(opened, "Build")
    opened.get_by_text("Change the network").click()
    fields(opened).get_by_label("Start from").select_option(label="ViT-Tiny")
    return opened


def fields(page: Page) -> Locator:
    return page.locator(".build .fields")


def wait_for_parameters(page: Page, config: ViTConfig) -> None:
    with torch.device("meta"):
        expected = sum(parameter.numel() for parameter in ViT(config).parameters())
    page.wait_for_function("n => document.querySelector('.build .totals dd')?.title === n", arg=f"{expected:,}")


def test_the_counts_follow_every_field_and_what_does_not_fit_gets_a_sentence(build: Page) -> None:
    wait_for_parameters(build, VIT_TINY)
    assert build.locator("#inputs").is_hidden(), "the network that is built is not the one on the left"
    fields(build).get_by_label("Depth").fill("1")
    wait_for_parameters(build, replace(VIT_TINY, depth=1))
    fields(build).get_by_label("The classifier reads").select_option(label="the mean of the patches")
    fields(build).get_by_label("Positions").select_option(label="sines and cosines")
    changed = replace(VIT_TINY, depth=1, pool="mean", pos_embed="sincos")
    wait_for_parameters(build, changed)

    heads = fields(build).get_by_label("Heads")
    heads.fill("5")
    build.get_by_text("A width of 192 cannot be shared equally by 5 heads").wait_for()
    assert build.get_by_role("button", name="Copy as Python").is_disabled()
    wrong = build.locator(".build [aria-invalid=true]")
    assert wrong.count() == 1 and wrong.get_attribute("name") == "embed_dim"
    assert "A width of 192" in build.locator(f"#{wrong.get_attribute('aria-describedby')}").inner_text()
    heads.fill("3")
    build.locator(".train .note", has_text="Only networks for digits can be trained here").wait_for()
    assert build.get_by_role("button", name="Train it").is_disabled(), "as before the number that did not fit"
    heads.fill("")
    build.get_by_text("Heads: enter a whole number from 1 to 512.").wait_for()
    heads.press_sequentially("6")
    build.wait_for_function("document.querySelector('.build .problem').innerText === ''")
    wait_for_parameters(build, replace(changed, num_heads=6))


def test_what_a_link_changed_is_in_sight(page: Page, address: str) -> None:
    network = "#section=build&network=A%20small%20ViT%20of%20digits"
    for link, is_open in (("#section=build", False), (f"{network},depth:3", True)):
        page.goto("about:blank")
        open_page(page, f"{address}{link}")
        page.locator(".build h2").wait_for()
        assert fields(page).is_visible() == is_open, link
    assert fields(page).get_by_label("Depth").input_value() == "3"


def test_the_code_runs_and_gives_the_shape(build: Page) -> None:
    fields(build).get_by_label("Start from").select_option(label="digits-tiny")
    fields(build).get_by_label("Classes").fill("3")
    wait_for_parameters(build, replace(PRESETS["digits-tiny"].config, num_classes=3))  # the last that it is told
    build.get_by_role("button", name="Copy as Python").click()
    build.locator(".build .code .news", has_text=".").wait_for()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(build.locator(".build pre").inner_text(), {})
    assert printed.getvalue().strip() == "torch.Size([1, 3])"
