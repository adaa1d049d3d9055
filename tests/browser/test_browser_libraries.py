"""Networks that timm and transformers build, on the page: each section, with the package's numbers and true words."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
import transformers
from gradio_client import Client, handle_file
from timm.models import save_for_hf
from torch import nn

import vit_demo
from vit_demo.inference.exploration import Exploration
from vit_demo.service.engine import _engines
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from ..weights.hub_server import served
from .choosing import (
    READY,
    STAGE,
    Page,
    choose_method,
    frames,
    launched,
    load_steps,
    look_from,
    method_button,
    middle_of,
    open_section,
    open_steps,
    percent,
    wait_a_moment,
    wait_until,
)

SHAPE = {"img_size": 64, "depth": 2, "embed_dim": 48, "num_heads": 3}
LABELS = ["lion", "tiger", "cat", "dog", "car"]


def randomized(network: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for parameter in network.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape)
    return network.eval()


def save_timm(folder: Path, architecture: str) -> None:
    network = randomized(timm.create_model(architecture, num_classes=len(LABELS), **SHAPE))
    config = {"label_names": LABELS, "pretrained_cfg": {**network.pretrained_cfg, "input_size": (3, 64, 64)}}
    save_for_hf(network, folder, config, model_args=SHAPE, safe_serialization=True)


def save_transformers(folder: Path) -> None:
    shape = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96}
    config = transformers.SiglipVisionConfig(image_size=64, patch_size=16, **shape)
    randomized(transformers.SiglipVisionModel(config)).save_pretrained(folder)
    transformers.SiglipImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Repositories by name."""
    found = {name: tmp_path_factory.mktemp(name) for name in ("dinov3", "siglip", "siglip-tower")}
    save_timm(found["dinov3"], "vit_small_patch16_dinov3")
    save_timm(found["siglip"], "vit_base_patch16_siglip_224")
    save_transformers(found["siglip-tower"])
    return found


@pytest.fixture(scope="module")
def address(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("cache")) as server, launched() as url:
        for name, folder in folders.items():
            server.repositories[f"someone/{name}"] = {path.name: path.read_bytes() for path in folder.iterdir()}
        yield url
    _engines.clear()  # its networks are not the real ones


def shown(page: Page) -> np.ndarray:
    """The map on the stage."""
    frames(page)
    return np.array(page.evaluate(f"Array.from({STAGE}.scene().map)")).reshape(4, 4)


def check_shown(page: Page, expected: np.ndarray, rtol: float = 1e-7, atol: float = 1e-4) -> None:
    """The map on the stage becomes the expected one; a slow machine takes its time."""
    wait_until(page, lambda: np.allclose(shown(page), expected, rtol=rtol, atol=atol))


def point_at(page: Page, selector: str, row: int, column: int) -> tuple[float, float]:
    return middle_of(page.locator(selector).first, row, column, 4, 4)


@pytest.mark.parametrize("name", ["dinov3", "siglip", "siglip-tower"])
def test_each_section_shows_a_network_of_another_library(name: str, page: Page, address: str, folders: dict[str, Path]):
    errors: list[str] = []
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    result = vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, str(folders[name]))
    assert result.preset.library == ("transformers" if name == "siglip-tower" else "timm")
    page.goto(f"{address}#tab=photos&model=someone/{name}&photo=lion")
    page.wait_for_selector(READY)
    page.wait_for_function(f"name => {STAGE}.current()?.source.preset === name", arg=f"someone/{name}")
    check_attention(page, result)
    check_download(page, result)
    if result.labels:
        check_prediction(page, result)
    else:
        words = page.locator("#stage .predictions").inner_text()
        assert "no classifier head" in words and not page.get_by_role("button", name="Test these colours").is_visible()
    check_features(page, result)
    if name != "siglip":  # of whose tower the other one has the same columns and steps
        check_compare(page, result)
        check_steps(page, result)
    open_section(page, "Build")
    page.locator("#stage .build").get_by_text("A small ViT of digits").first.wait_for(state="attached")
    assert "dinov3" not in page.locator("#stage .build").inner_text(), "which ViTConfig cannot describe"
    assert errors == []


def check_attention(page: Page, result: Exploration) -> None:
    """Of no patch, under the pointer, of a patch, of all blocks and heads; then rollout."""
    default = "class token" if result.preset.config.class_token else "query of attention pooling"
    check_shown(page, result.attention(), atol=1e-4)
    assert page.locator(".subject").inner_text().startswith(f"From the {default}")
    sentence = page.locator(".sentence").inner_text()
    assert "prediction is read from" not in sentence and "before it answers" not in sentence, "no head reads it so"
    look_from(page)
    page.mouse.move(*point_at(page, "#stage .picture", 1, 2))
    check_shown(page, result.attention(query=(1, 2)), atol=1e-3)
    np.testing.assert_allclose(shown(page)[1, 2], result.attention(query=(1, 2))[1, 2], atol=1e-4)
    page.mouse.click(*point_at(page, "#stage .picture", 1, 2))
    page.wait_for_function(f"{STAGE}.scene().view.query === 6")
    check_shown(page, result.attention(query=(1, 2)), atol=1e-3)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="All heads").click()
    page.locator("#stage .cell").nth(7).wait_for()
    cells = page.locator("#stage .cell").evaluate_all("all => all.map((cell) => cell.title)")
    maps = result.attention_maps()
    peaks = np.concatenate([maps.mean(1)[None], maps.swapaxes(0, 1)]).max((2, 3))  # the mean, then each head, by block
    np.testing.assert_allclose([percent(title) for title in cells], 100 * peaks.ravel(), atol=0.051)
    choose_method(page, "Rollout")
    page.wait_for_function(f"{STAGE}.scene().method.label === 'Rollout'")
    check_shown(page, result.rollout(), atol=1e-4)
    no_class_token(page, result)


def check_download(page: Page, result: Exploration) -> None:
    load_steps(page)
    page.locator(".download summary").click()
    with page.expect_download() as download:
        page.locator("[data-download=json]").click()
    values = json.loads(download.value.path().read_bytes())
    np.testing.assert_array_equal(np.float32(values["map"]), result.rollout())


def check_prediction(page: Page, result: Exploration) -> None:
    """The evidence for the predicted class, its test, and the logit lens."""
    (label, probability), *_ = result.top(1)
    first = page.locator("#stage .bars .first")
    assert first.locator(".label").inner_text() == label
    assert percent(first.locator(".number").inner_text()) == pytest.approx(100 * probability, abs=0.06)
    choose_method(page, "Relevance")
    page.wait_for_function(f"{STAGE}.scene().method.label === 'Relevance'")
    check_shown(page, result.relevance(), rtol=1e-3, atol=1e-5)
    page.get_by_role("button", name="Test these colours").click()
    page.get_by_role("button", name="Tested").wait_for()
    found = result.faithfulness("relevance", seeds=5)
    assert f"{found.deletion_area:.2f}" in page.locator("#stage .faithfulness .measurements").inner_text()
    answers = page.locator("#stage .answers")
    answers.locator("span").nth(1).wait_for()
    labels = [row[0][0] for row in result.logit_lens()[1:]]
    shown = answers.locator("strong").evaluate_all("all => all.map((name) => name.title)")
    assert shown == labels[: 1 + (labels[0] != labels[1])]


def check_features(page: Page, result: Exploration) -> None:
    method_button(page, "Similarity").check()
    page.locator(".subject", has_text="block 2 of 2").wait_for()
    page.mouse.click(*point_at(page, "#stage .picture", 0, 1))
    page.mouse.move(*point_at(page, "#stage .picture", 3, 2))
    page.locator(".value", has_text="row 4, column 3: cosine").wait_for()
    cosine = re.search(r"[−-]?\d\.\d\d", page.locator(".value").inner_text())
    assert cosine
    assert float(cosine[0].replace("−", "-")) == pytest.approx(result.similarity((0, 1))[3, 2], abs=0.006)
    for mode in ("PCA", "Segments", "Norms", *(["Predictions"] if result.labels else [])):
        method_button(page, mode).press(" ")
        wait_a_moment(page)
        no_class_token(page, result)
    if result.labels:
        reads = "what attention pooling reads of" if result.trace.pooling is not None else "the mean of"
        page.locator("#stage").get_by_text(f"The head was trained on {reads} all tokens").first.wait_for()


def check_compare(page: Page, result: Exploration) -> None:
    open_section(page, "Compare")
    page.wait_for_function("!document.querySelector('.compare .pending') && document.querySelector('.compare dd')")
    column = page.get_by_role("region").filter(has=page.locator("dd", has_text="4 × 4"))
    facts = dict(zip(column.locator("dt").all_inner_texts(), column.locator("dd").all_inner_texts(), strict=True))
    assert facts["Tokens"] == str(result.trace.num_tokens)
    assert facts["Prediction"].startswith(result.top(1)[0][0] if result.labels else "no classes")
    no_class_token(page, result)


def check_steps(page: Page, result: Exploration) -> None:
    """Each step of the tour has its figure; the attention of a head and the prediction are the package's."""
    open_section(page, "Explore")
    open_steps(page)
    steps = page.locator("#stage .steps")
    figure = steps.locator(".figure")
    for step in range(1, 9):
        steps.locator(".dots button").nth(step - 1).click()
        page.wait_for_function(f"document.querySelector('.steps .dots [aria-current=step]')?.innerText === '{step}'")
        page.wait_for_function("!document.querySelector('.steps').classList.contains('loading')")
        assert figure.locator("> *").count() and not steps.locator(".error").inner_text()
        assert not re.search(r"NaN|undefined|null", steps.inner_text())
        assert "another library. In the Vision Transformer of this package" in steps.locator(".code").text_content()
        no_class_token(page, result)
        if step == 2:
            assert figure.locator(".filters button").count() == 24
        if step == 3:
            has_positions = result.preset.config.class_token is False  # SigLIP; DINOv3 rotates queries and keys
            assert ("adds no position embedding" in steps.inner_text()) != has_positions
            assert ("+ position" in figure.inner_text()) == has_positions
        if step == 4:
            steps.locator("select[data-key=block]").select_option("1")
            steps.locator("select[data-key=head]").select_option("2")
            steps.locator(".tour-picture").click(position={"x": 5, "y": 5})
            page.mouse.move(0, 0)
            steps.locator(".prompt", has_text="row 1, column 1, attend to most in head 3 of block 2").wait_for()
            steps.locator(".reveal").click()
            caption = steps.locator(".picture-caption", has_text="row 1, column 1 attends to in head 3 of block 2")
            caption.wait_for()
            expected = result.attention(1, 2, (0, 0))
            for row in figure.locator(".share-row:not(.total)").all_inner_texts()[1:]:
                place, share = re.match(r"row (\d), column (\d)", row), percent(row) if "%" in row else None
                if place:
                    assert share == pytest.approx(100 * expected[int(place[1]) - 1, int(place[2]) - 1], abs=0.06)
        if step in (5, 6):
            assert figure.get_by_text("new token").count() and "not seen" not in steps.inner_text()
        if step == 7 and result.labels:
            steps.locator(".option").first.click()
            labels = figure.locator(".rows .label").all_inner_texts()
            assert labels == [ranking[0][0] for ranking in result.logit_lens()]


def no_class_token(page: Page, result: Exploration) -> None:
    """Where there is no class token, the stage names none."""
    if not result.preset.config.class_token:
        assert "class token" not in page.locator("#stage").inner_text().replace("has no class token", "")


def test_the_api_gives_its_numbers(address: str, folders: dict[str, Path]):
    client = Client(address, verbose=False)
    picture = handle_file(EXAMPLE_PHOTOS["lion"].path)
    for name, folder in folders.items():
        result = vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, str(folder))
        for method, values in {"attention": result.attention(), "rollout": result.rollout()}.items():
            found = client.predict(picture, f"someone/{name}", 16, method, -1, -1, -1, -1, "", api_name="/explain")
            np.testing.assert_allclose(found["map"], values, atol=1e-6)
        found = client.predict(picture, f"someone/{name}", 16, api_name="/predict")
        assert found["label"] == (result.top(1)[0][0] if result.labels else "")
