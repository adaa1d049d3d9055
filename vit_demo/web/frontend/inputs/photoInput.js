// @ts-check
// The photo input: choose a file, drop or paste one anywhere, film until a frame is held, or pick an example.

import { camera, NO_CAMERA, showWays } from "../shared/camera.js";
import { constants } from "../shared/constants.js";
import { documentEvents, make, makeButton, onFiles, rove, setText } from "../shared/dom.js";
import { fitInside, partOf } from "../shared/geometry.js";
import { english, languageChange, translate } from "../shared/language.js";
import { modelInput, photoAct, photoNews, shownResult } from "../shared/pageState.js";
import { createRequestIds, sendPhoto } from "../shared/requests.js";

const SLOW_UPLOAD = 300; // milliseconds
const NO_PICTURE = english("This is not a picture: choose a photo.");

const creditOf = ({ source, licence }) => `${translate(source)}, ${translate(licence)}`;

/** From the path of an upload to the photo in this browser. */
export const ownPhotos = new Map();

/**
 * Starts the photo input in its element. `upload(file)` resolves to {path}; `exampleUrl(name, size)` is the address of a
 * small copy, of size "preview" or "button"; `onPicture(picture)` gets {upload, name}, {example}, null, or {refused} with a
 * sentence; `onMessage()` is called when there is something to read. `show(picture, place)` shows the picture of the state,
 * and the section in which its tab is open, or null. `take(file, to)` uploads a file, for this input or another one, {onPicture, say}; `say` shows a sentence.
 */
export function createPhotoInput(element, { upload, examples, exampleUrl, onPicture, onMessage }) {
  const find = (selector) => element.querySelector(selector);
  const [image, remove, problem] = ["img.preview", ".remove", ".problem"].map(find);
  const startUpload = createRequestIds(); // a later picture replaces one that is still being uploaded
  let chosen = /** @type {any} */ (null); // the picture of the state
  let picture = /** @type {any} */ (null); // the same, unless it was refused
  let shownPlace = /** @type {string | null} */ (null);

  const say = (sentence) => {
    problem.textContent = sentence;
    photoNews.publish(sentence);
    if (sentence) onMessage();
  };

  async function take(file, to = { onPicture, say }) {
    camera.stop();
    if (!file) return;
    if (file.type && !file.type.startsWith("image/")) return choose({ refused: NO_PICTURE }, to);
    if (file.size > constants.maxUploadBytes) {
      const megabytes = constants.maxUploadBytes / 1e6;
      const refused = translate("The photo is larger than {megabytes} MB: choose a smaller copy.", { megabytes });
      return choose({ refused }, to);
    }
    const isCurrent = startUpload();
    to.say("");
    const timer = setTimeout(() => isCurrent() && to.say(english("Uploading …")), SLOW_UPLOAD);
    const sent = await sendPhoto(upload, file);
    clearTimeout(timer);
    if (!isCurrent()) return;
    if (sent.error) return choose({ refused: sent.error }, to);
    ownPhotos.set(sent.path, URL.createObjectURL(file));
    choose({ upload: sent.path, name: file.name.slice(0, 100) }, to);
  }

  function choose(next, to = { onPicture, say }) {
    if (next?.refused && to.onPicture !== onPicture) return to.say(next.refused); // a drawing stays
    startUpload();
    to.say("");
    camera.stop();
    to.onPicture(next);
  }

  async function film() {
    say("");
    await camera.start().catch(() => say(NO_CAMERA));
  }

  const acts = {
    choose: () => find(".file").click(),
    camera: () => find(".camera-file").click(),
    live: film,
    hold: async () => take(await camera.hold()),
    stop: camera.stop,
    remove: () => choose(null),
  };
  const act = (name) => acts[name]?.();
  for (const selector of [".file", ".camera-file"]) onFiles(find(selector), (file) => take(file));
  element.addEventListener("click", ({ target }) => act(target.closest("[data-way]")?.dataset.way));
  photoAct.subscribe(element, act);
  camera.open(find("video"));
  camera.subscribe(element, showFilm);
  documentEvents(element)("keydown", ({ key }) => key === "Escape" && camera.stop());
  documentEvents(element)("visibilitychange", () => document.hidden && camera.stop());
  find(".frame").addEventListener("click", ({ target }) => {
    if (!remove.contains(target) && !picture && !camera.isOn()) act("choose");
  });

  function showFilm() {
    element.classList.toggle("filming", camera.isOn());
    showWays(element);
  }

  const buttons = examples.map(({ name, title }) => {
    const small = make("img", { src: exampleUrl(name, "button"), alt: title, width: 44, height: 44, loading: "lazy" });
    return makeButton(() => choose({ example: name }), {}, small);
  });
  find("#photos").append(...buttons);

  /** What the browser cannot show, such as HEIC, and an upload of before a reload: the server's small copy. */
  function addressOf({ example, upload: path }) {
    if (example) return exampleUrl(example, "preview");
    const result = shownResult.latest();
    return ownPhotos.get(path) ?? (result?.source.upload === path ? result.photo?.image : null) ?? null;
  }

  function show(next, place = shownPlace) {
    if (place !== shownPlace || next !== chosen) camera.stop(); // nobody sees it, or a newer picture has come
    shownPlace = place;
    chosen = next;
    picture = next?.refused ? null : next;
    const example = examples.find(({ name }) => name === picture?.example);
    const address = picture && addressOf(picture);
    image.hidden = !address;
    if (address && image.src !== address) image.src = address;
    image.alt = example?.title ?? (picture ? english("Your photo") : "");
    remove.hidden = !picture;
    find(".invitation").hidden = Boolean(picture);
    setText(find(".credit"), example ? `${translate(example.title)}: ${creditOf(example)}` : "");
    buttons.forEach((button, i) => {
      button.title = `${translate(examples[i].title)}. ${creditOf(examples[i])}`;
      button.setAttribute("aria-pressed", String(examples[i].name === picture?.example));
    });
    rove(find("#photos"));
    showFilm();
  }

  image.addEventListener("error", () => {
    if (!picture?.upload) return;
    ownPhotos.delete(picture.upload);
    show(chosen);
  });
  shownResult.subscribe(element, () => show(chosen));

  return { show, take, say };
}

// A photo dropped on or pasted into any part of the page.

/** Calls `take(file, target)`, for as long as the element is on the page; `veil` shows while a file is dragged over it. */
export function acceptGlobalDrop(element, veil, take) {
  const listen = documentEvents(element);
  let depth = 0; // of the elements that the dragged file has entered

  const holdsFile = ({ dataTransfer }) => [...(dataTransfer?.types ?? [])].includes("Files");

  function enter(change) {
    depth = Math.max(0, depth + change);
    veil.hidden = !depth;
  }

  listen("dragenter", (event) => holdsFile(event) && enter(1));
  listen("dragleave", (event) => holdsFile(event) && enter(-1));
  listen("dragover", (event) => holdsFile(event) && event.preventDefault());
  listen("drop", (event) => {
    if (!holdsFile(event)) return;
    enter(Number.NEGATIVE_INFINITY);
    if (event.defaultPrevented) return; // a place of its own has taken the files
    event.preventDefault();
    take(event.dataTransfer.files[0], event.target);
  });
  listen("paste", (event) => {
    const file = [...(event.clipboardData?.files ?? [])].find(({ type }) => type.startsWith("image/"));
    if (!file) return;
    event.preventDefault();
    take(file, null);
  });
}

// Which part of the photo the network gets: left bright in its small picture, and in words.

export function createCrop(panel) {
  const [frame, image, video, crop, words] = [".frame", "img", "video", ".crop", ".seen-part"].map((name) =>
    panel.querySelector(name),
  );

  function show() {
    const { photo } = modelInput.latest();
    const sides = video.hidden ? [image.naturalWidth, image.naturalHeight] : [video.videoWidth, video.videoHeight];
    const isShown = photo && !(image.hidden && video.hidden);
    crop.hidden = !isShown || !["crop", "squash"].includes(photo.fit) || percentageOf(photo) === 100;
    setText(words, photo ? describeFit(photo) : "");
    if (crop.hidden || !sides[0]) return; // a photo is loaded once its frame is in sight
    const room = [frame.clientWidth, frame.clientHeight];
    const size = fitInside(sides, room);
    const [[left, width], [top, height]] = size.map((side, i) => [(room[i] - side) / 2, side]);
    const part = partOf({ left, top, width, height }, photo.box);
    for (const [name, value] of Object.entries(part)) crop.style[name] = `${value}px`;
  }

  for (const each of [modelInput, languageChange]) each.subscribe(panel, show);
  image.addEventListener("load", show);
  new ResizeObserver(show).observe(frame);
}

const percentageOf = ({ box: [left, top, right, bottom] }) => Math.round(100 * (right - left) * (bottom - top));

/** What a fit means; *stars* make words bold. */
export function describeFit({ fit, box, rows, columns }) {
  const percentage = percentageOf({ box });
  if (fit === "keep") return translate("*All of it*, in {rows} × {columns} squares.", { rows, columns });
  if (fit === "border") return translate("*All of it*, with bars that make it a square.");
  if (fit === "crop" && percentage === 100) return translate("*All of it*: the photo is square.");
  if (fit === "crop") return translate("*The bright square*, {percentage}\u00a0% of the photo.", { percentage });
  return percentage < 100
    ? translate("*The bright part*, {percentage}\u00a0% of the photo, stretched to a square.", { percentage })
    : translate("*All of it*, stretched to a square.");
}
