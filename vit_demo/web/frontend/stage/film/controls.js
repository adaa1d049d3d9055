// @ts-check
// What is pressed while a film plays: the line of its beats with its buttons, whose attention it follows, and the ways on.

import { isNew, make, makeButton, put, setText } from "../../shared/dom.js";
import { english, plain, translate } from "../../shared/language.js";
import { placeOf } from "../format.js";
import { titleOf } from "../views/steps/texts.js";
import { placeOfCard } from "./layout.js";
import { styles } from "./styles.js";

const ICONS = {
  back: "M14.5 6 8.5 12l6 6",
  play: "M8 5.5v13l10-6.5z",
  pause: "M8.5 6v12M15.5 6v12",
  again: "M5 12a7 7 0 1 0 2.2-5.1M5 4.5V8h3.5",
  next: "M9.5 6l6 6-6 6",
  close: "M6 6l12 12M18 6 6 18",
};
const LABELS = { play: english("Play"), pause: english("Pause"), again: english("Play again") };
const NOTE = english("Touch anything to read what it is.");
const CARD = 264; // CSS pixels, its width
const NARROW = 560; // of a stage, from which on the picture has no room for the card

const icon = (name) => `<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${ICONS[name]}" /></svg>`;

/** Makes them in a stage; `act` is {step(by), toggle(), close(), follow(isSquare), open(), openAll(), trick(), save(), seek(time), comeBack()}. */
export function createControls({ find, host, picture }, act) {
  host.append(make("style", { textContent: styles }));
  const [front, faces] = ["front", "faces"].map((name) => make("canvas", { className: `film ${name}` }));
  front.ariaHidden = "true";
  const parts = english("The picture of the film: the arrows up and down lead through what it shows");
  Object.assign(faces, { tabIndex: 0, role: "application", ariaLabel: parts });
  const about = make("p");
  const card = make("div", { className: "film-card", hidden: true }, about);
  picture.append(front, faces, card);
  const slider = make("input", { type: "range", min: 0, step: "any", ariaLabel: english("Moments of the film") });
  const tool = (name, label, onclick) =>
    makeButton(onclick, { className: "tool", ariaLabel: label, title: label, innerHTML: icon(name) });
  const toggle = tool("pause", LABELS.pause, act.toggle);
  const line = make(
    "div",
    { className: "film-line" },
    slider,
    tool("back", english("Step back"), () => act.step(-1)),
    toggle,
    tool("next", english("Step on"), () => act.step(1)),
    tool("close", english("Back to the picture"), act.close),
  );
  const [ofAll, ofSquare] = [false, true].map((isSquare) => makeButton(() => act.follow(isSquare)));
  const followed = english("Whose attention the film follows");
  const from = make("div", { className: "switch", role: "group", ariaLabel: followed }, ofAll, ofSquare);
  const more = makeButton(act.open, { className: "link more-of-step" });
  const keep = makeButton(save, { className: "quiet keep" });
  const trick = makeButton(act.trick, { className: "link" }, english("Can you make it say something else?"));
  const acts = make("div", { className: "film-acts" }, from, more, keep, trick);
  const all = makeButton(act.openAll, { className: "link" }, english("Go through it in eight steps"));
  const back = makeButton(act.comeBack, { className: "link film-back" }, english("Back to the film"));
  const note = make("div", { className: "film-note" }, all, make("p", {}, NOTE));
  const news = make("p", { className: "visually-hidden film-spoken", ariaLive: "polite" });
  find(".explore").append(acts, line, note, news);
  slider.addEventListener("input", () => act.seek(Number(slider.value)));
  let beats = /** @type {any} */ (null); // whose marks are on the line

  function save() {
    act.save();
    setText(keep, english("Picture saved."));
  }

  /** Shows what was touched, {words, at, free}, beside it, or where the headline is; or nothing. */
  function show(touched) {
    if (Boolean(touched) === card.hidden) {
      const hadFocus = card.contains(document.activeElement);
      card.hidden = !touched;
      if (hadFocus) faces.focus({ preventScroll: true });
    }
    const isNarrow = host.clientWidth < NARROW;
    if (acts.contains(trick) !== isNarrow) isNarrow ? acts.append(trick) : note.prepend(trick); // where there is room
    const isInCard = Boolean(touched) && !isNarrow;
    if (isInCard !== card.contains(more)) isInCard ? card.append(more) : from.after(more); // while it is pressed, too, it stays
    if (!touched) return;
    setText(about, touched.words);
    const { clientWidth: width, clientHeight: height } = picture;
    const wide = isNarrow ? width : CARD;
    card.style.width = `${wide}px`;
    if (isNarrow) {
      const [said, box] = [find(".said"), picture].map((each) => each.getBoundingClientRect());
      const top = Math.max(said.top, 0) - box.top; // in sight, if the page is scrolled
      Object.assign(card.style, { left: "0", top: `${top}px`, minHeight: `${said.height}px` });
      return;
    }
    const { left, top } = placeOfCard([width, height], [wide, card.offsetHeight], touched.free, touched.at);
    Object.assign(card.style, { left: `${left}px`, top: `${top}px`, minHeight: "" });
  }

  /** Writes a moment, and the card of what was touched in it, if any. */
  function write({ result, film }, moment, { time, isPlaying, query, touched }) {
    const { beat } = moment;
    const isEnd = beat.kind === "end";
    const share = (at) => `${(100 * at) / film.seconds}%`;
    put(slider, { max: String(film.seconds), ariaValueText: plain(beat.words) });
    slider.value = String(time);
    if (isNew(slider, share(time))) slider.style.setProperty("--played", share(time));
    if (film.beats !== beats) {
      const marks = film.beats.slice(1).map(({ start }) => {
        const [left, right] = [`calc(${share(start)} - 1px)`, `calc(${share(start)} + 1px)`];
        return `transparent ${left}, var(--surface) ${left} ${right}, transparent ${right}`;
      });
      slider.style.setProperty("--beats", `linear-gradient(to right, ${marks.join(", ")})`);
    }
    const name = isPlaying ? "pause" : isEnd ? "again" : "play";
    if (toggle.dataset.icon !== name) {
      Object.assign(toggle, { innerHTML: icon(name), ariaLabel: LABELS[name], title: LABELS[name] });
      toggle.dataset.icon = name;
    }
    setText(ofAll, result.hasClassToken ? english("From the class token") : english("From all tokens"));
    const square = query === null ? "" : placeOf(result, query);
    setText(ofSquare, square ? translate("From {place}", { place: square }) : english("From a square"));
    put(ofAll, { ariaPressed: String(query === null) });
    put(ofSquare, { ariaPressed: String(query !== null) });
    put(from.style, { visibility: moment.index > 1 ? "" : "hidden" }); // before it has joined nobody knows the class token
    const { step } = (touched ?? beat).step;
    const place = { step: step + 1, title: titleOf(step) };
    setText(more, translate("More in step {step} ›", place));
    const title = translate("More in step {step}: {title}.", place);
    if (keep.hidden) setText(keep, english("Save this picture"));
    for (const each of [keep, all]) put(each, { hidden: !isEnd });
    put(more, { ariaLabel: title, title, hidden: isEnd && !touched }); // then all of them are offered
    put(trick, { hidden: !isEnd || Boolean(touched) || !result.predictions.length });
    show(touched);
    const said = `${beat.start} ${touched?.words ?? ""}`;
    if (isNew(news, [film.beats, said])) setText(news, touched ? plain(touched.words) : beat.spoken);
    ({ beats } = film);
  }

  const has = (node) => [line, acts, faces, card].some((each) => each.contains(node));
  return { front, faces, toggle, back, write, has, isPicture: (node) => node === faces || card.contains(node) };
}
