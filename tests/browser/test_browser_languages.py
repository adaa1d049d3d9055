"""The page in other languages: no English word is left, nothing is too long, and the way back is exact."""

import json
import re
from collections.abc import Callable, Iterator

import pytest

from scripts.translations import FRONTEND, LANGUAGES, page_words, read_language
from vit_demo.weights import PRESETS

from ..asynchronous import PATIENCE
from .choosing import Browser, BrowserContext, Page, clear_storage, close_settings, frames, rub, settings

CODES = sorted(path.stem for path in LANGUAGES.glob("*.json"))
SECTIONS = ("attention", "features", "steps", "compare", "build")
WIDTHS = {390: 844, 820: 1180, 1440: 900}

TEXTS = """() => {
  const skipped = "script, style, code, pre, textarea, [translate=no], [hidden], #language option, .credit";
  const found = [];
  for (const root of document.querySelectorAll("#header, #inputs, #stage, #footer")) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT,
      (node) => node.matches?.(skipped) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (node.nodeType === Node.ELEMENT_NODE) {
        for (const name of ["aria-label", "title", "placeholder", "alt", "data-label", "data-why"]) {
          if (node.getAttribute(name)) found.push(node.getAttribute(name));
        }
        if (node.dataset.text) found.push(node.textContent);
      } else if (!element.closest("[data-text]") && node.data.trim()) found.push(node.data.trim());
    }
  }
  return [document.title, ...found];
}"""
"""All texts and attributes with words; a text with bold parts as a whole."""

TOO_LONG = """() => {
  const wide = document.documentElement.scrollWidth - innerWidth;
  const boxes = "button, label, [role=tab], summary, .pill, .name, dt, th";
  const cut = [...document.querySelectorAll(`:is(#header, #inputs, #stage) :is(${boxes})`)]
    .filter((node) => node.offsetParent && !node.closest("[translate=no]") && node.clientWidth)
    .filter((node) => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).display !== "inline")
    .map((node) => `${node.textContent.trim().slice(0, 60)}: ${node.scrollWidth} > ${node.clientWidth}`);
  return wide > 1 ? [`the page is ${wide} px too wide`, ...cut] : cut;
}"""

BESIDE = """() => {
  const search = document.querySelector(".fewest");
  const [its, tour] = [search, document.querySelector(".tour")].map((each) => each.getBoundingClientRect());
  const isFree = its.right <= tour.left - 8 && search.scrollWidth <= search.clientWidth;
  return isFree ? [] : [`${its.right} and ${search.scrollWidth - search.clientWidth} px, ${tour.left}`];
}"""
"""Where the button of the search reaches under that of the film, or its words do."""

NAMES = {
    *("vit_demo", "API", "AttnLRP", "NACLIP", "MLP", "HTML", "PNG", "SVG", "JSON", "NPZ", "org/name", "CPU", "PCA"),
    *("px", "ms", "kB", "MB", "GB"),
    *PRESETS,
    *("ViT-Tiny", "MNIST from scratch", "einops ViT", "annotated ViT"),
}
"""Words of the page that are the same in every language, beside those of classes and authors."""


@pytest.fixture(scope="module")
def visitors(browser: Browser) -> Iterator[dict[str, BrowserContext]]:
    """By their language; what is compiled for one page of theirs is there for the next."""
    kept = {"reduced_motion": "reduce", "viewport": {"width": 1440, "height": 900}}
    found = {language: browser.new_context(locale=language, **kept) for language in ("en-GB", "de")}
    yield found
    for context in found.values():
        context.close()


@pytest.fixture
def visit(visitors: dict[str, BrowserContext]) -> Iterator[Callable[..., Page]]:
    """Opens an address as a new visitor, whose browser speaks a language."""

    def visit(address: str, language: str = "en-GB", catalogue: dict | None = None) -> Page:
        page = visitors[language].new_page()
        clear_storage(page)
        page.set_default_timeout(1000 * PATIENCE)
        if catalogue is not None:
            page.route("**/languages/*.json", lambda route: route.fulfill(json=catalogue))
        page.goto(address)
        page.wait_for_selector('.stage[data-ready="true"]')
        return page

    yield visit
    for context in visitors.values():
        for page in context.pages:
            page.close()


def open_section(page: Page, section: str) -> None:
    page.evaluate("section => { location.hash = `section=${section}` }", section)
    waits = {
        "features": ".stage:has(.drawer.tokens) .sentence:not(:empty)",
        "steps": ".steps .figure > *",
        "compare": ".compare dl dd",
    }
    if section in waits:
        page.locator(waits[section]).first.wait_for(state="attached")


def test_no_language_leaves_english_or_is_too_long(visit: Callable[..., Page], address: str) -> None:
    page = visit(address)
    problems: dict[str, list[str]] = {}
    for section in SECTIONS:
        open_section(page, section)
        for tab in ("photos", "digits") if section == "attention" else ("digits",):
            if section in ("attention", "features", "steps"):  # where the inputs are in sight
                page.locator(f"#tab-{tab}").click()
            page.wait_for_selector('.stage[data-state="done"]')
            for language in CODES:
                page.locator("#language").select_option(language)
                page.evaluate("document.querySelector('.drawer').hidden = false")
                page.wait_for_selector(f"html[lang={language}]")
                frames(page)
                translations = read_language(language)
                left = [text for text in page.evaluate(TEXTS) if translations.get(text, text) != text]
                problems[f"{language}, {section}, {tab}: still English"] = left
                for width, height in WIDTHS.items():
                    page.set_viewport_size({"width": width, "height": height})
                    frames(page)
                    problems[f"{language}, {section}, {tab}, {width} px"] = page.evaluate(TOO_LONG)
                if (section, tab) != ("attention", "digits"):
                    continue
                rub(page)
                page.locator(".fewest:visible").wait_for()
                for width, height in ((1024, 768), (1280, 720), (1366, 768)):
                    page.set_viewport_size({"width": width, "height": height})
                    frames(page)
                    problems[f"{language}, the search, {width} px"] = page.evaluate(BESIDE)
                page.locator("[data-mode=draw]").click()
    problems = {where: found for where, found in problems.items() if found}
    assert not problems, json.dumps(problems, indent=1, ensure_ascii=False)


TERMS = (FRONTEND / "shared" / "glossary" / "texts.js").read_text(encoding="utf-8")


def bracketed(key: str) -> str | dict[str, str]:
    if "{count}" in key:
        return {"other": f"⟦{key}⟧"} if "|" in key else f"⟦{key}⟧"
    if json.dumps(key, ensure_ascii=False) in TERMS:
        words, explanation = key.split(": ", 1)
        return f"{bracketed(words)}: ⟦{explanation}⟧"
    return "|".join(f"⟦{form}⟧" for form in key.split("|"))


def is_forgotten(text: str) -> bool:
    rest = text if "⟦" not in text else ""
    for name in sorted(NAMES, key=len, reverse=True):
        rest = rest.replace(name, "")
    return bool(re.search(r"[^\W\d_]{2}", rest))


def test_no_word_is_forgotten(visit: Callable[..., Page], address: str) -> None:
    """In a language whose words all stand in brackets, a text of ours without brackets is in no catalogue."""

    page = visit(address, "de", {key: bracketed(key) for key in page_words()})
    forgotten: set[str] = set()

    def collect() -> None:
        frames(page)
        forgotten.update(filter(is_forgotten, page.evaluate(TEXTS)))

    collect()
    page.locator(".blocks .more").click()
    settings(page)
    for details, content in ((".terms", "dd"), (".method-docs", ".text p")):
        page.locator(f"{details} > summary").click()
        page.locator(f"{details} {content}").first.wait_for()
    page.locator(".faithfulness .test").click()
    page.locator(".randomization:not(:empty)").wait_for()
    canvas = page.locator(".picture")
    for name in ("attention", "rollout", "norm_attention", "relevance", "attnlrp", "occlusion"):
        settings(page).locator(f".all input[data-value={name}]").check()
        canvas.hover(position={"x": 30, "y": 30})
        collect()
    close_settings(page)
    rub(page)
    for rub_out, until in ((canvas, ".back:enabled"), (page.locator(".fewest"), ".next-act:not(:empty)")):
        rub_out.click()
        page.locator(until).wait_for()
        collect()
        page.locator(".back").click()
    for name in ("python", "command", "json"):
        page.locator(f"[data-download={name}]").evaluate("button => button.click()")
        collect()
    open_section(page, "features")
    for mode in ("similarity", "pca", "segments", "norms", "classes"):
        settings(page).locator(f".all input[data-value={mode}]").check()
        canvas.hover(position={"x": 30, "y": 30})
        collect()
    open_section(page, "steps")
    for left in range(7, -1, -1):
        page.locator(".steps:not(.loading) .figure > *").first.wait_for()
        collect()
        if page.locator(".steps .reveal").is_visible():
            page.locator(".steps .reveal").click()
            collect()
        if left:
            page.locator(".steps .next").click()
    for section in ("compare", "build"):
        open_section(page, section)
        collect()
    page.locator(".build .change summary").click()
    page.locator(".build [name=image_size]").fill("13")
    collect()
    open_section(page, "attention")
    page.locator("#tab-photos").click()
    page.wait_for_selector('.stage[data-state="done"]')
    page.locator("[data-mode=draw]").click()  # what removes a photo belongs to it
    page.locator(".photo-ways [data-way=remove]").click()
    collect()
    assert not forgotten, json.dumps(sorted(forgotten), indent=1, ensure_ascii=False)


def test_the_lessons_are_in_the_page_s_language_and_theme(visit: Callable[..., Page], address: str) -> None:
    page = visit(address, "de")
    page.emulate_media(color_scheme="light")
    page.wait_for_selector("html[lang=de]")
    page.locator("#theme").click()
    page.wait_for_selector("body.dark")
    for place in ("#header", "#footer"):
        assert page.locator(f'{place} a[href^="./lessons"]').get_attribute("href") == "./lessons?language=de", place
    with page.context.expect_page() as opened:
        page.locator("#footer").get_by_role("link", name="Aufgaben").click()
    lessons = opened.value
    problems: list[str] = []
    lessons.on("console", lambda message: problems.append(message.text))
    lessons.emulate_media(color_scheme="light")
    lessons.reload()
    assert lessons.locator("html").get_attribute("lang") == "de" and lessons.title() == "Aufgaben – vit_demo"
    colour = "getComputedStyle(document.body).backgroundColor"
    assert lessons.evaluate(colour) == "rgb(19, 20, 24)"
    lessons.emulate_media(media="print")
    assert lessons.evaluate(colour) == "rgb(255, 255, 255)" and lessons.locator("nav").is_hidden()
    lessons.emulate_media(media="screen")
    answers = "document.querySelectorAll('td details[open]').length"
    assert lessons.evaluate(answers) == 0
    lessons.locator("th summary").click()
    lessons.wait_for_function(f"{answers} === 14")
    lessons.get_by_role("link", name="Français").click()
    lessons.wait_for_selector("html[lang=fr]")
    assert lessons.evaluate(colour) == "rgb(19, 20, 24)" and not problems, "the policy allows the page's script"
    page.locator("#language").select_option("en")
    page.wait_for_selector("html[lang=en]")
    assert page.locator("#header a").first.get_attribute("href") == "./lessons?language=en"


def test_a_link_opens_the_page_in_its_language_until_another_is_chosen(
    visit: Callable[..., Page], address: str
) -> None:
    page = visit(f"{address}?language=de#digit=4")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.wait_for_selector('html[lang=de] .stage[data-top1="4"]')
    page.get_by_role("button", name="Link kopieren").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => /\\?language=de#.*digit=4/.test(text))")
    page.locator("#language").select_option("en")
    page.wait_for_selector("html[lang=en]")
    assert "language" not in page.url and "digit=4" in page.url
    page.reload()
    page.wait_for_selector('html[lang=en] .stage[data-top1="4"]')


def test_the_menu_changes_the_language_at_once_and_back_exactly(visit: Callable[..., Page], address: str) -> None:
    page = visit(address)
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    for section in SECTIONS:  # so that every part of the page is there
        open_section(page, section)
    page.wait_for_function("!document.querySelector('.compare .pending')")
    page.locator(".build .totals dd").first.wait_for(state="attached")
    open_section(page, "attention")
    frames(page)
    before = page.evaluate(TEXTS)
    assert "Can the colours be trusted?" in before and page.locator("#language").input_value() == "en"
    fetched.clear()

    page.locator("#language").select_option("de")
    page.wait_for_selector("html[lang=de]")
    german = read_language("de")
    found = page.evaluate(TEXTS)
    assert german["Can the colours be trusted?"] in found and "Can the colours be trusted?" not in found
    assert page.title() == german["vit_demo: see how a Vision Transformer works"]
    assert "," in page.locator(".predictions .number").first.inner_text(), "numbers, too"

    page.locator("#language").select_option("fr")
    page.wait_for_selector("html[lang=fr]")
    page.locator("#language").select_option("en")
    page.wait_for_selector("html[lang=en]")
    frames(page)
    assert page.evaluate(TEXTS) == before
    assert [url.rsplit("/", 1)[1] for url in fetched] == ["de.json", "fr.json"], "English needs no catalogue"

    page.locator("#language").select_option("es")
    page.wait_for_selector("html[lang=es]")
    page.reload()
    page.wait_for_selector("html[lang=es]")
    assert json.loads(page.evaluate("JSON.stringify(localStorage)"))["vit_demo-language"] == "es"


def test_a_language_that_cannot_be_loaded_leaves_menu_and_page_as_they_are(
    visit: Callable[..., Page], address: str
) -> None:
    page = visit(address)
    page.route("**/languages/de.json", lambda route: route.abort())
    page.locator("#language").select_option("de")
    page.wait_for_function("document.querySelector('#language').validationMessage.startsWith('The language could not')")
    assert page.locator("#language").input_value() == "en"
    page.reload()
    page.wait_for_selector('.stage[data-ready="true"]')
    assert page.locator("html").get_attribute("lang") == "en", "and the choice is not kept"
