// @ts-check
// The film in the picture's place: plays, pauses, steps, and leads to the steps below and to a picture to keep.

import { make, setText } from "../../shared/dom.js";
import { currentLanguage, english, plain, translate } from "../../shared/language.js";
import { pageState } from "../../shared/pageState.js";
import { createReplyCache } from "../../shared/requests.js";
import { probabilityOf } from "../format.js";
import { isStill } from "../motion.js";
import { change, choicesOf, chooseMode, redraw } from "../stage.js";
import { explain } from "./card.js";
import { createControls } from "./controls.js";
import { write } from "./labels.js";
import { keptFree, layoutOf, levelsAt, partAt, partsAt } from "./layout.js";
import { paintMoment } from "./painting.js";
import { attentionOf, decodeFilm, filmOf, frameAt, momentOf, restOf, sceneBefore } from "./plan.js";

const MARGIN = 12; // CSS pixels around what is painted, in which the line to the answer runs
const GLIDE = 300; // milliseconds in which the answers make room
const LONGEST = 0.25; // seconds that a frame may take; a window that was hidden goes on where it was
const KEPT = { width: 760, height: 560, margin: 40, top: 96, answer: 150 }; // CSS pixels of the picture to keep
const LIGHT = {
  ...{ text: "#17181c", dim: "#5f6169", surface: "#fff", paper: "#fff", accent: "#5146d8", accentText: "#4338ca" },
  ...{ edge: "rgb(0 0 0 / 14%)", rest: "rgb(0 0 0 / 12%)", plus: "rgb(91 75 219)", minus: "rgb(201 102 20)" },
};

const pace = () => (isStill() ? "auto" : "smooth"); // of the way to a step, and back

/** Makes the film of a stage; `request` is that of its parts. */
export function createFilm(stage, request) {
  const { find, host, picture } = stage;
  const replies = createReplyCache(request, () => redraw(stage));
  let result = /** @type {any} */ (null); // that of the film
  let query = /** @type {number | null} */ (null);
  let scene = /** @type {any} */ (null); // {result, numbers, query, film}
  let layout = /** @type {any} */ (null);
  let written = ""; // what the scene is made from; "" before its numbers are there
  let [time, last, isPlaying] = [0, 0, false];
  let moment = /** @type {any} */ (null);
  let card = /** @type {any} */ (null); // what was touched: {part, at, time}, until the film goes on
  let awaited = /** @type {(() => void)[]} */ ([]); // what was asked of the film before its numbers were there
  let isDocked = false; // whether all settings stood open beside the picture

  const controls = createControls(stage, {
    step: (by) => step(by),
    toggle: () => (isPlaying ? pause() : play()),
    close: () => close(),
    follow: (isSquare) => follow(isSquare ? squareOf() : null),
    open: () => open((card ? explain(scene, moment, card.part) : moment.beat).step),
    openAll: () => open({ step: 0 }),
    trick: () => chooseMode(stage, "rub"),
    save: () => saveLast(scene),
    seek: (to) => scene && seek(to),
    comeBack: () => {
      scrollTo({ top: 0, behavior: pace() });
      toggle.focus({ preventScroll: true });
    },
  });
  const { front, faces, toggle, back } = controls;

  /** A square to follow: the one that was chosen, else the one that the last block looks at most. */
  function squareOf() {
    const { pinned } = choicesOf(stage);
    if (pinned !== null && result.tokenOf[pinned] >= 0) return pinned;
    const { film, numbers } = scene;
    const attention = attentionOf(numbers, result, result.numBlocks - 1).subarray(film.numPrefix);
    return result.tokenOf.indexOf(attention.indexOf(Math.max(...attention)) + film.numPrefix);
  }

  function follow(next) {
    if (!written || next === query || (next !== null && result.tokenOf[next] < 0)) return;
    [query, card] = [next, null];
    redraw(stage);
  }

  function begin() {
    result = stage.result;
    if (!result) return;
    if (stage.film !== film) isDocked = !find(".drawer").hidden;
    find(".drawer").hidden = true;
    [scene, moment, query, time, written, card, awaited] = [sceneBefore(result), null, null, 0, "", null, []];
    isPlaying = !isStill();
    stage.film = film;
    stage.moments.scrub(null);
    setText(find(".tour"), english("Back to the picture"));
    scrollTo(0, 0);
    redraw(stage);
  }

  function close() {
    if (stage.film !== film) return;
    const isInside = controls.has(document.activeElement);
    stage.film = null;
    find(".drawer").hidden = !isDocked;
    if (host.classList.contains("filming")) glide(() => host.classList.remove("filming"));
    setText(find(".tour"), english("See how it gets there"));
    if (isInside) find(".tour").focus({ preventScroll: true });
    redraw(stage);
  }

  function play() {
    if (time >= scene.film.seconds) time = 0;
    isPlaying = !isStill();
    if (!isPlaying) return step(time ? 1 : 0);
    last = performance.now();
    redraw(stage);
  }

  function pause() {
    isPlaying = false;
    redraw(stage);
  }

  function seek(to) {
    isPlaying = false;
    time = Math.min(scene.film.seconds, Math.max(0, to));
    redraw(stage);
  }

  /** Does it as soon as there are numbers. */
  const soon = (act) => {
    if (written) act();
    else if (scene) awaited.push(act);
  };

  const step = (by) => soon(() => seek(restOf(scene.film, momentOf(scene.film, time).index + by)));

  /** Explains a part where it is; the film waits meanwhile. */
  function touch(given) {
    isPlaying = false;
    card = given && { ...given, time };
    redraw(stage);
  }

  /** Explains the next part, or the one before. */
  function lead(by) {
    const parts = partsAt(layout, scene, moment);
    const at = parts.findIndex(({ at }) => String(at) === String(card?.at));
    const next = parts[at + by] ?? parts.at(by < 0 ? -1 : 0);
    if (next) touch(next);
  }

  /** Opens one of the eight steps below, about what is given of it; the film waits where it is, and the step leads back to it. */
  function open(given) {
    pause();
    change(stage, { section: "steps", tour: { ...pageState.get().view.tour, ...given } });
    find(".chapter.steps h2")?.after(back);
    back.focus({ preventScroll: true });
    find(".chapter.steps")?.scrollIntoView({ block: "start", behavior: pace() });
  }

  /** The frame of the first screen as the film has it. */
  function frame(given, drawing) {
    if (drawing.result !== result) {
      close();
      return given;
    }
    const entry = replies.get(result, { kind: "film", query }, decodeFilm);
    if (entry.error && !written) {
      scene = null;
      host.classList.remove("filming");
    }
    if (entry.error) return { ...given, headline: { was: "", text: entry.error, next: "" } };
    const key = JSON.stringify([result.run, query, currentLanguage()]);
    if (entry.value && key !== written) {
      const numbers = entry.value;
      scene = { result, numbers, query, film: filmOf({ result, numbers, query, end: given.headline.text }) };
      if (!written && isStill()) time = restOf(scene.film, 0);
      written = key;
      for (const act of awaited.splice(0)) act();
    }
    if (!host.classList.contains("filming")) return given;
    const now = performance.now();
    if (isPlaying) time = Math.min(scene.film.seconds, time + Math.min(LONGEST, (now - last) / 1000));
    last = now;
    if (written && time >= scene.film.seconds) isPlaying = false;
    if (card?.time !== time) card = null;
    moment = { ...momentOf(scene.film, time), part: card?.part };
    drawing.choices = { ...drawing.choices, block: Math.max(0, moment.block) }; // which is outlined below
    const touched = card && {
      ...{ ...card, ...explain(scene, moment, card.part) },
      free: keptFree(layout, scene, moment, card.part),
    };
    controls.write(scene, moment, { time, isPlaying, query, touched });
    return frameAt(given, scene, moment);
  }

  /** Paints the film once the picture is what the network gets. */
  function paint({ seen }) {
    if (!scene || seen < 1) return;
    if (!host.classList.contains("filming")) {
      glide(() => host.classList.add("filming"));
      last = performance.now();
      if (!host.contains(document.activeElement) || document.activeElement?.matches(".tour, .verbs *, .picture"))
        toggle.focus({ preventScroll: true });
      return redraw(stage);
    }
    if (!moment) return redraw(stage);
    const box = picture.getBoundingClientRect();
    const answer = find(".bars .first button")?.getBoundingClientRect();
    const isAbove = answer && answer.bottom <= box.top;
    const isRow = answer && !find(".predictions").matches(".fixed"); // beside whose number the line can pass the others
    const [alongX, alongY] = answer ? [answer.left + answer.width / 2, answer.top + answer.height / 2] : [0, 0];
    const target = !answer
      ? null
      : !isAbove
        ? [answer.left - box.left + 2, alongY - box.top]
        : isRow
          ? [box.width + 6, alongY - box.top, true]
          : [alongX - box.left, answer.bottom - box.top + 2];
    const up = Math.max(MARGIN, isAbove && target ? -target[1] + 2 : 0);
    const along = Math.max(MARGIN, target && !isAbove ? target[0] - box.width + 4 : 0);
    layout = layoutOf([box.width, box.height], scene, levelsAt(moment, result));
    const size = [box.width + MARGIN + along, box.height + MARGIN + up];
    const [on, shown] = [front, faces].map((canvas) => {
      const pixels = size.map((side) => Math.round(side * devicePixelRatio));
      if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
      const [width, height] = size.map((side) => `${side}px`);
      Object.assign(canvas.style, { left: `${-MARGIN}px`, top: `${-up}px`, width, height });
      const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
      context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
      context.clearRect(0, 0, size[0], size[1]);
      context.translate(MARGIN, up);
      return context;
    });
    const isDark = document.body.classList.contains("dark");
    paintMoment({ front: on, faces: shown, colours: coloursOf(), isDark }, layout, scene, moment, target);
    if (isPlaying && time < scene.film.seconds) redraw(stage);
  }

  /** Has the answers glide to the place that a change gives them. */
  function glide(change) {
    const answers = find(".predictions");
    const before = answers.getBoundingClientRect();
    change();
    const after = answers.getBoundingClientRect();
    if (isStill()) return;
    const from = { translate: `${before.left - after.left}px ${before.top - after.top}px`, width: `${before.width}px` };
    answers.animate([from, { translate: "0 0", width: `${after.width}px` }], { duration: GLIDE, easing: "ease" });
  }

  function coloursOf() {
    const style = getComputedStyle(host);
    const of = (name) => style.getPropertyValue(`--${name}`);
    const steps = getComputedStyle(find(".chapter.steps") ?? host);
    const [plus, minus] = ["--plus", "--minus"].map((name) => `rgb(${steps.getPropertyValue(name)})`);
    const isPaper = result.pixelated; // whose colours the theme turns
    return {
      ...LIGHT,
      text: of("text"),
      dim: of("dim"),
      surface: of("surface"),
      accent: of("accent"),
      accentText: of("accent-text"),
      paper: isPaper ? LIGHT.paper : of("surface"),
      rest: isPaper ? LIGHT.rest : of("track"),
      plus,
      minus,
    };
  }

  faces.addEventListener("click", (event) => {
    if (!scene || !moment) return;
    const box = picture.getBoundingClientRect();
    const at = [event.clientX - box.left, event.clientY - box.top];
    const part = written ? partAt(layout, scene, moment, at[0], at[1]) : null;
    if (part?.patch !== undefined) follow(part.patch);
    else if (part) touch({ part, at });
    else if (card) touch(null);
    else step(1);
  });
  addEventListener(
    "keydown",
    (event) => {
      const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
      const target = /** @type {Element} */ (event.target);
      if (stage.film !== film || !scene || ctrlKey || metaKey || altKey || shiftKey) return;
      if (picture.getBoundingClientRect().bottom < 0) return; // one reads a step
      if (
        target.matches("input:not([type=range]), textarea, select, .stage .chapter *") ||
        find(".explore").classList.contains("elsewhere")
      )
        return;
      const isPressed = key === " " && target.closest("button, summary, a") && target !== toggle;
      const isInPicture = Boolean(written) && controls.isPicture(target);
      const act = {
        ...{
          Escape: () => (card ? touch(null) : close()),
          ArrowLeft: () => step(-1),
          ArrowRight: () => step(1),
          PageUp: () => step(-1), // which a presenter's clicker sends
          PageDown: () => step(1),
          Home: () => soon(() => seek(restOf(scene.film, 0))),
          End: () => soon(() => seek(scene.film.seconds)),
        },
        ...{ " ": () => (isPlaying ? pause() : soon(play)) },
        ...(isInPicture && { ArrowUp: () => lead(-1), ArrowDown: () => lead(1) }),
      }[key];
      if (!act || isPressed) return;
      event.preventDefault();
      act();
    },
    true,
  );

  const film = {
    ...{ begin, close, frame, paint, seek, step },
    /** Goes to where a block is over. */
    toBlock: (block) =>
      soon(() => {
        const { beats } = scene.film;
        seek(
          restOf(
            scene.film,
            beats.findLastIndex((each) => each.block === block),
          ),
        );
      }),
    /** For tests: the numbers, the plan, the moment and what was touched. */
    now: () => ({ ...scene, moment: written && moment, time, isPlaying, card }),
  };
  return film;
}

/** Saves the last picture, with its sentence and answer, on white paper. */
function saveLast(scene) {
  const { result, film } = scene;
  const { width, height, margin, top, answer } = KEPT;
  const canvas = make("canvas", { width: 2 * (width + answer + 2 * margin), height: 2 * (height + top + margin) });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(2, 2);
  context.fillStyle = LIGHT.surface;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = LIGHT.text;
  context.font = "650 26px system-ui, sans-serif";
  context.fillText(plain(translate(film.beats.at(-1).words)), margin, 56);
  context.translate(margin, top);
  const [first] = result.predictions;
  const target = first ? [width + 24, height / 2] : null;
  const kept = layoutOf([width, height], scene);
  const on = { front: context, faces: context, colours: LIGHT, isDark: false };
  paintMoment(on, kept, scene, momentOf(scene.film, film.seconds), target);
  if (first) {
    const room = { width: answer - 24, height: 64, size: 26, weight: 650 };
    const high = write(context, first.label, width + 32, height / 2, { ...room, colour: LIGHT.accentText });
    write(context, probabilityOf(first), width + 32, (height + high) / 2 + 12, {
      width: answer,
      size: 15,
      colour: LIGHT.dim,
    });
  }
  make("a", { href: canvas.toDataURL(), download: `vit_demo-film-${first?.name ?? "tokens"}.png` }).click();
}
