"""What a hand does on the picture, and what a test sees of it, at the sizes of the first screen."""

import base64
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .choosing import STAGE, Page, Points, frames, on_paper

NETWORK = """() => {
  const plain = window.fetch;
  window.live = { asked: 0, answered: 0, run: "", isLost: false, isHeld: false, ended: 0 };
  document.addEventListener("lostpointercapture", () => setTimeout(() => window.live.ended++), true);
  window.fetch = async (...request) => {
    if (!String(request[0]).endsWith("/live")) return plain(...request);
    window.live.asked++;
    try {
      if (window.live.isLost) throw new TypeError("lost");
      const reply = await plain(...request);
      while (window.live.isHeld) await new Promise((resolve) => setTimeout(resolve, 20));
      window.live.run = (await reply.clone().json()).result?.run ?? window.live.run;
      return reply;
    } finally {
      window.live.answered++;
    }
  };
}"""
"""Counts live questions and strokes that ended, keeps the run of the newest live answer, and loses or holds answers."""

WATCH = """(selector) => {
  const parts = [...document.querySelectorAll(selector)];
  const boxes = () => parts.map((part) => {
    const { x, y, width, height } = part.getBoundingClientRect();
    const isFixed = getComputedStyle(part).position === "fixed";
    return width ? [x + scrollX, isFixed ? y : y + scrollY, width, height] : null;
  });
  const first = boxes();
  const nameOf = (part) => part.dataset.show ?? part.dataset.mode ?? part.className;
  const mine = (window.watching = {});
  window.moved = new Set();
  const look = () => {
    if (window.watching !== mine) return;
    for (const [i, box] of boxes().entries()) {
      if (!box) continue;
      first[i] ??= box;
      const isSame = box.every((side, at) => Math.abs(side - first[i][at]) < 1);
      if (!isSame) window.moved.add(`${nameOf(parts[i])}: ${first[i].map(Math.round)} became ${box.map(Math.round)}`);
    }
    requestAnimationFrame(look);
  };
  look();
}"""
"""Compares with every frame where the parts are with where they were first."""

FIXED = ".headline, .view, .strip-of, .line button, .predictions, .verbs button, .tour, .blocks, .ways"
"""What stays where it is, whatever a visitor does."""

REWRITTEN = """async () => {
  const found = [];
  const nameOf = ({ target, type, attributeName }) =>
    `${attributeName ?? type} of ${target.className || target.parentElement?.className || target.nodeName}`;
  const watch = new MutationObserver((all) => found.push(...all.map(nameOf)));
  const all = { attributes: true, childList: true, characterData: true, subtree: true };
  watch.observe(document.querySelector(".stage"), all);
  document.querySelector(".view").dispatchEvent(new PointerEvent("pointerenter")); // the stage is drawn again
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  watch.disconnect();
  return found;
}"""
"""What a frame in which nothing changes writes all the same; a click on a node that is replaced would be lost."""

CUT = """() => {
  const texts = document.createTreeWalker(document.querySelector(".gradio-container"), NodeFilter.SHOW_TEXT);
  const other = ".visually-hidden, select, script, style, .chapter, #footer, .scroller, #skip, .drawer";
  const found = [];
  const explored = []; // [text, rect]
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const box = node.parentElement;
    const text = node.data.trim();
    if (!text || box.closest(other)) continue;
    if (!box.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter(({ width }) => width);
    const isWhole = box.scrollWidth <= box.clientWidth + 1 || box.title === text; // or is to be had whole
    if (box.clientWidth && !isWhole) found.push(`wider than its box: ${text}`);
    if (rects.some(({ left, right }) => left < -1 || right > innerWidth + 1)) found.push(`beyond the screen: ${text}`);
    if (!box.closest(".explore")) continue;
    for (const one of rects) {
      const isOver = ([, two]) =>
        Math.min(one.right, two.right) - Math.max(one.left, two.left) > 2 &&
        Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top) > 6;
      found.push(...explored.filter(isOver).map(([words]) => `over each other: ${words} / ${text}`));
    }
    explored.push(...rects.map((rect) => [text, rect]));
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than the screen");
  return found;
}"""
"""Words that are wider than their box, beyond the screen or over each other."""

SAID = """() => {
  const text = (selector) => document.querySelector(selector).innerText.replace(/\\s+/g, " ").trim();
  const all = (selector) => [...document.querySelectorAll(selector)].map((each) => each.textContent);
  return {
    headline: text(".headline"),
    numbers: all(".bars .number"),
    first: all(".bars .first .label"),
    early: all(".answers > span"),
  };
}"""
"""What the first screen says in this frame."""

CLOCK = """() => {
  const [frame, now] = [window.requestAnimationFrame.bind(window), performance.now.bind(performance)];
  let time = null; // while it stands still
  let waiting = [];
  const isTime = () => document.querySelector(".pencil:not([hidden])");
  window.requestAnimationFrame = (callback) => {
    if (time === null && isTime()) [time, performance.now] = [now(), () => time];
    return time === null ? frame(callback) : waiting.push(callback);
  };
  window.pass = (milliseconds) => {
    for (const end = time + milliseconds; time < end; ) {
      time += 16;
      for (const callback of waiting.splice(0)) callback(time);
    }
  };
  window.isHeld = () => time !== null;
}"""
"""Time that stands still once the pencil writes, and then passes by ``pass(milliseconds)``, frame by frame."""

HEARD = """() =>
  [...document.querySelectorAll("[aria-live], [role=status], [role=alert]")].map((each) => each.textContent)"""


def said(page: Page) -> dict[str, Any]:
    frames(page)
    return page.evaluate(SAID)


def picture(page: Page) -> NDArray[np.int16]:
    frames(page)
    return painted(page)


def painted(page: Page) -> NDArray[np.int16]:
    """The pixels of the picture in this frame."""
    address = page.locator(".picture").evaluate("canvas => canvas.toDataURL()")
    with Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))) as image:
        return np.asarray(image.convert("RGB"), np.int16)


def is_alike(one: NDArray[np.int16], other: NDArray[np.int16]) -> bool:
    """Whether two pictures look the same: lines lie on fractions of pixels."""
    return one.shape == other.shape and bool(np.abs(one - other).max() < 8)


def run_of(page: Page) -> str:
    return page.locator(".stage").get_attribute("data-run") or ""


def wait_until_answered(page: Page) -> None:
    """Every question of a stroke so far has its answer."""
    page.wait_for_function(
        "live.asked > 0 && live.asked === live.answered && document.querySelector('.stage').dataset.run === live.run"
    )
    frames(page)


def wait_until_done(page: Page) -> None:
    """The ordinary result of what is on the picture is there."""
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    page.wait_for_function(f"document.querySelector('.stage').dataset.run === {STAGE}.current()?.run")
    frames(page)


class Hand:
    """A mouse, or one finger where the screen is touched; its strokes are of places on the screen."""

    def __init__(self, page: Page, has_fingers: bool):
        self.page, self.has_fingers = page, has_fingers
        self.devtools = page.context.new_cdp_session(page)

    def touch(self, kind: str, *places: tuple[float, float]) -> None:
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)]
        self.devtools.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})

    def pen(self, kind: str, place: tuple[float, float]) -> None:
        held = {"button": "left", "buttons": 1, "clickCount": 1, "pointerType": "pen"}
        self.devtools.send("Input.dispatchMouseEvent", {"type": f"mouse{kind}", "x": place[0], "y": place[1], **held})

    def down(self, place: tuple[float, float]) -> None:
        if self.has_fingers:
            return self.touch("Start", place)
        self.page.mouse.move(*place)
        return self.page.mouse.down()

    def along(self, places: Points) -> None:
        for place in places:
            self.touch("Move", place) if self.has_fingers else self.page.mouse.move(*place)

    def up(self) -> None:
        """Lifts the hand, and waits until the page knows it."""
        ended = self.page.evaluate("live.ended")
        self.touch("End") if self.has_fingers else self.page.mouse.up()
        self.page.wait_for_function("ended => live.ended > ended", arg=ended)

    def draw(self, *strokes: Points, within: Callable[[], object] = lambda: None) -> None:
        """Draws strokes of the paper; ``within()`` is called before each is ended."""
        for stroke in strokes:
            places = on_paper(self.page, stroke)
            self.down(places[0])
            self.along(places[1:])
            within()
            self.up()
