// @ts-check
// What happens in "Teach your own classes", fetched when it is first wanted: a box a class, to which the picture beside it, files
// and the webcam are added. The page then uses the network that the server made of them, so that whatever it shows is about these
// classes.

import { createWebcam, NO_CAMERA } from "../../../shared/camera.js";
import { constants } from "../../../shared/constants.js";
import { isNew, make, makeButton, onFiles, setText, track } from "../../../shared/dom.js";
import { english, languageChange, translate } from "../../../shared/language.js";
import { isAwaited, menuModels, pageState, REPLACE } from "../../../shared/pageState.js";
import { pause, SETTLE, sendPhoto } from "../../../shared/requests.js";
import { percent } from "../../format.js";
import { exampleDigit, nameOfOthers, othersThan } from "./others.js";
import { styles } from "./styles.js";

const FILMED_EVERY = 400; // milliseconds
const START = english("Draw something, or choose a photo, and add it to a class.");
const ADD = { digits: english("Add this drawing"), photos: english("Add this photo") };

const ENOUGH = 3; // pictures of a class that was named below an answer
const MORE = {
  digits: english(
    "One more “{name}”, please: draw it, then add it. Two examples say little.|{count} more “{name}”, please: draw each, then add it. One example says little.",
  ),
  photos: english(
    "One more “{name}”, please: choose a photo, then add it. Two examples say little.|{count} more “{name}”, please: choose a photo, then add it. One example says little.",
  ),
};
const SHORTCUT = 13; // the task that teaches a shortcut with drawings alone
const TRICK = [english("Now trick it"), english("Take the lines away")];
const TRICK_OF_PHOTOS = english("Now trick a network: this takes drawings");

/** Starts it in its card; `shown` is the result on the stage. */
export function createTeaching(card, { request, upload, examples, shown }) {
  const find = (selector) => card.querySelector(selector);
  card.append(make("style", { textContent: styles }));
  // Drawings and photos have different networks: `name` is that of the newest, `last` what the server said of it.
  // `named` is the class that was named below an answer, `others` the one that was filled with examples, `isTricked` whether
  // these have a line below them.
  const start = () => ({
    classes: /** @type {any[]} */ ([]),
    name: "",
    last: /** @type {any} */ (null),
    named: /** @type {any} */ (null),
    others: /** @type {any} */ (null),
    isTricked: false,
  });
  const kept = { digits: start(), photos: start() };
  const task = () => pageState.get()?.task ?? "digits";
  const classes = () => kept[task()].classes;
  let news = "";
  let turn = Promise.resolve(""); // one request after the other
  let refused = /** @type {{file: string, error: string, other?: string}[]} */ ([]); // of the files chosen last
  let sending = 0;

  function createClass() {
    const name = translate("class {number}", { number: classes().length + 1 });
    const input = make("input", { value: name, maxLength: constants.maxLabel, autocomplete: "off", spellcheck: false });
    input.setAttribute("aria-label", translate("Name of the class"));
    const [number, bar] = [make("span", { className: "number" }), track(0)];
    const pictures = make("div", { className: "pictures" });
    const video = make("video", { muted: true, playsInline: true, hidden: true });
    const add = makeButton(() => addShown(one), { className: "quiet" });
    add.dataset.teach = "add";
    const file = make("input", { type: "file", accept: "image/*,.heic,.heif,.avif", multiple: true, hidden: true });
    const choose = makeButton(() => file.click(), { className: "link" }, english("Choose files"));
    const film = make("button", { type: "button", className: "link film" }, english("Hold to film"));
    const others = make("span", {}, choose, film);
    const head = make("div", { className: "field" }, input, number);
    const box = make("div", { className: "box" }, head, bar, pictures, make("p", {}, add, others), video, file);
    box.dataset.teach = "class";
    const one = { name, examples: /** @type {any[]} */ ([]), box, input, number, bar, pictures, add, film };
    input.addEventListener("focus", () => input.select());
    input.addEventListener("change", ({ target: { value } }) => attempt(one, () => ({ name: value.trim() })));
    input.addEventListener("blur", draw); // without what was refused
    onFiles(file, (...files) => addFiles(one, files));
    box.addEventListener("drop", (event) => {
      const files = [...(event.dataTransfer?.files ?? [])];
      if (!files.length) return;
      event.preventDefault(); // the page would take one for its own
      addFiles(one, files);
    });
    holdToFilm(film, video, one);
    return one;
  }

  /** Teaches with one class changed by what `partOf()` returns; if the server refuses that, everything stays as it was.
   * Resolves to why. */
  function attempt(one, partOf) {
    const kind = task(); // its turn may come while another tab is open
    turn = turn.then(async () => {
      const own = kept[kind];
      const { preset, patchSize, fit } = pageState.get()[kind];
      const part = partOf();
      const wanted = own.classes.map((each) => (each === one ? { ...each, ...part } : each));
      const filled = wanted.filter(({ examples }) => examples.length);
      const fields = {
        preset: menuModels.latest().get(preset)?.base ?? preset,
        patch_size: patchSize,
        fit: fit ?? "crop",
        classes: filled.map(({ name, examples }) => ({ name, examples: examples.map(({ source }) => source) })),
      };
      const reply = filled.length ? await request({ kind: "teach", ...fields }) : { result: {} };
      news = reply?.error ?? "";
      if (reply?.result) {
        Object.assign(one ?? {}, part);
        own.last = filled.length ? reply.result : null;
        if (own.last?.model) use(own, patchSize);
      }
      draw();
      return news;
    });
    return turn;
  }

  /** The page uses the newest network, which takes the place of the one before in the menu. */
  function use(own, patchSize) {
    const [models, before, entry] = [menuModels.latest(), own.name, own.last.model];
    own.name = entry.name;
    models.set(entry.name, entry);
    pageState.changeTab(entry.task, { preset: entry.name, patchSize }, REPLACE);
    if (before !== entry.name) models.delete(before);
    menuModels.publish(models);
  }

  const add = (one, source, picture, file = "", part = {}) =>
    attempt(one, () => ({ ...part, examples: [...one.examples, { source, picture, file }] }));

  function say(words) {
    news = words;
    draw();
  }

  async function addShown(one, part = {}) {
    while (isAwaited()) await pause(SETTLE);
    if (!shown) return say(START);
    const { picture } = pageState.get()[task()];
    if (picture?.strokes) pageState.changeTab(task(), { picture: { ...picture, isAdded: true } }, REPLACE);
    const { digit, upload, example } = shown.source;
    add(one, digit ? { digit } : upload ? { upload } : { example }, digit ?? shown.photo.image, picture?.name, part);
  }

  /** What is on the stage becomes an example of a class of that name, beside one that is filled with examples. */
  function ask(name) {
    draw(); // there are boxes
    const own = kept[task()];
    const isFree = ({ examples: { length } }) => !length;
    const one = own.classes.find((each) => each.name === name) ?? own.classes.find(isFree) ?? createAnother();
    if (!one) return say(english("There is no room for another class: remove the pictures of one first."));
    const others = own.classes.filter((each) => each !== one);
    own.named = one;
    if (others.every(isFree)) {
      own.others = others[0];
      const { source, exampleDigit: onStage } = shown ?? {};
      const isOther = (each) =>
        each.digit !== `${onStage}` && (!each.source.example || each.source.example !== source?.example);
      const pictures = othersThan(task(), name, examples).filter(isOther);
      Object.assign(own.others, { name: nameOfOthers(task(), name), examples: pictures });
    }
    addShown(one, { name });
  }

  /** All example digits get a line below them, a shortcut, or lose it; the task goes on from there, or from a photo. */
  async function trick() {
    if (task() === "photos") {
      location.hash = `lesson=${SHORTCUT}&section=teach&patch_size=4`;
      return;
    }
    const own = kept[task()];
    const examples = own.others.examples.map((one) => (one.digit ? exampleDigit(one.digit, !own.isTricked) : one));
    if (!(await attempt(own.others, () => ({ examples })))) own.isTricked = !own.isTricked;
    pageState.changeView({ lesson: own.isTricked ? SHORTCUT : null });
    draw();
  }

  /** Adds files; those that are refused stay on the list until others are chosen. */
  async function addFiles(one, files, isFilm = false) {
    if (!sending++) refused = [];
    for (const file of files) {
      let { path, error = "" } = await sendPhoto(upload, file);
      const isSame = ({ source }) => !isFilm && path && source.upload === path;
      const same = classes().find(({ examples }) => examples.some(isSame));
      if (path && !same) error = await add(one, { upload: path }, URL.createObjectURL(file), file.name);
      if (same) refused.push({ file: file.name, error, other: same.examples.find(isSame).file || same.name });
      else if (error) refused.push({ file: file.name, error });
      if (error) news = "";
      draw();
    }
    sending--;
  }

  function holdToFilm(button, video, one) {
    const webcam = createWebcam(video);
    let isHeld = false;
    async function start(event) {
      if (event.repeat || (event.key && ![" ", "Enter"].includes(event.key))) return;
      event.preventDefault();
      isHeld = true;
      if (!sending++) refused = [];
      try {
        if (!(await webcam.start())) return;
        while (isHeld) {
          await pause(FILMED_EVERY);
          if (isHeld) await addFiles(one, [await webcam.frame()], true);
        }
      } catch {
        say(NO_CAMERA);
      } finally {
        sending--;
      }
      webcam.stop();
    }
    const stop = () => {
      isHeld = false;
      webcam.stop();
    };
    for (const name of ["pointerdown", "keydown"]) button.addEventListener(name, start);
    for (const name of ["pointerup", "pointerleave", "pointercancel", "keyup", "blur"])
      button.addEventListener(name, stop);
  }

  function draw() {
    while (classes().length < 2) classes().push(createClass());
    const { name: taught, last } = kept[task()];
    const isOurs = shown && shown.source.preset === taught;
    for (const one of classes()) {
      const found = isOurs && shown.predictions.find(({ label }) => label === one.name);
      if (one.input !== document.activeElement) one.input.value = one.name;
      one.number.textContent = found ? percent(100 * found.probability, 1) : "";
      one.bar.firstElementChild.style.width = `${100 * (found ? found.probability : 0)}%`;
      one.box.classList.toggle("first", Boolean(found) && found === shown.predictions[0]);
      setText(one.add, ADD[task()]);
      one.film.hidden = task() === "digits" || !navigator.mediaDevices?.getUserMedia;
      const thumbnails = one.examples.map((example) => thumbnail(one, example));
      const place = make("span", { className: "hint" }, english("You can drop pictures here, too."));
      one.pictures.replaceChildren(...(thumbnails.length ? thumbnails : [place]));
    }
    const boxes = classes().map(({ box }) => box);
    if (find(".classes").lastChild !== boxes.at(-1)) find(".classes").replaceChildren(...boxes);
    find(".another").hidden = boxes.length >= constants.maxTaughtClasses;
    find(".primary").hidden = !last?.model;
    const { named, others, isTricked } = kept[task()];
    const canBeTricked = task() === "photos" ? named : others?.examples.some(({ digit }) => digit);
    find(".trick").hidden = !last?.model || missing() > 0 || !canBeTricked;
    setText(find(".trick"), task() === "photos" ? TRICK_OF_PHOTOS : TRICK[Number(isTricked)]);
    setText(find(".sure"), news || noteOf(last));
    const lines = refused.map(
      ({ file, error, other }) =>
        `${file}: ${other ? translate("This is the same picture as {other}: choose another one.", { other }) : translate(error)}`,
    );
    if (isNew(find(".refused"), lines))
      find(".refused").replaceChildren(...lines.map((textContent) => make("li", { textContent })));
    find(".kept").textContent = translate(
      "A link to the network holds your classes, not your pictures. The server deletes your photos, and what the network computed from them, after an hour. There may be {pictures} pictures in {classes} classes.",
      { pictures: constants.maxTaughtPictures, classes: constants.maxTaughtClasses },
    );
  }

  /** How many pictures the class that was named still needs. */
  function missing() {
    const { named } = kept[task()];
    return named ? ENOUGH - named.examples.length : 0;
  }

  function noteOf(last) {
    if (!last) return START;
    if (!last.model) return english("Now add a picture to another class.");
    const { named, others, isTricked } = kept[task()];
    if (missing() > 0) return translate(MORE[task()], { count: missing(), name: named.name });
    if (isTricked && named)
      return translate(
        "Each picture of “{other}” has a line below it now. Draw “{name}” with a line below it: what does it say, and why?",
        { name: named.name, other: others.name },
      );
    if (last.right === null)
      return english(
        "The bars say what it takes your picture for. Give each class two or more: then it is tested, too.",
      );
    return translate(
      "Tested on each picture after learning from all others: *{right} of {count}* are right; guessing would get {guessed}. Now try another one.",
      last,
    );
  }

  function thumbnail(one, example) {
    const remove = () => attempt(one, () => ({ examples: one.examples.filter((each) => each !== example) }));
    const picture = make("img", { src: example.picture, alt: "", className: example.source.digit ? "ink" : "" });
    const button = makeButton(remove, { title: translate("Remove") }, picture);
    button.setAttribute("aria-label", translate("Remove"));
    return button;
  }

  /** Another class, where there may be one. */
  function createAnother() {
    if (classes().length >= constants.maxTaughtClasses) return null;
    classes().push(createClass());
    draw();
    return classes().at(-1);
  }

  find(".another").addEventListener("click", () => createAnother()?.input.focus());
  find(".trick").addEventListener("click", trick);
  languageChange.subscribe(card, draw);
  pageState.subscribe(card, (state) => {
    if (state?.view.section !== "teach") return;
    const hasTwo = classes().filter(({ examples }) => examples.length).length > 1;
    const preset = state[state.task].preset;
    if (hasTwo && !menuModels.latest().get(preset)?.base)
      attempt(null, () => ({})); // another network was chosen
    else draw();
  });

  function show(result) {
    shown = result;
    draw();
  }
  draw();
  return { show, ask };
}
