// @ts-check
// The inputs: they show the page's state and change it; nothing else holds a choice.

import { createPad } from "../pad/pad.js";
import { sketch } from "../pad/sketch.js";
import { toDataUrl } from "../pad/strokes.js";
import { syncHistory } from "../shared/browserHistory.js";
import { camera } from "../shared/camera.js";
import { setConstants } from "../shared/constants.js";
import { copyText, createRadios, rove } from "../shared/dom.js";
import { english, languageChange, linkInLanguage } from "../shared/language.js";
import { encodeLink, FITS, firstState, leftOut } from "../shared/link.js";
import { stopLoader } from "../shared/loader.js";
import { menuModels, PUSH, pageState, REPLACE, readSetting, retryResult, TASKS } from "../shared/pageState.js";
import { sendRequest } from "../shared/requests.js";
import { createMenu, PHOTO_MODEL } from "./modelMenu.js";
import { acceptGlobalDrop, createCrop, createPhotoInput, ownPhotos } from "./photoInput.js";
import { createResults } from "./results.js";

const FIT_NAMES = [english("Centre"), english("Stretch"), english("Whole")];

/** Starts the inputs in their element; called by Gradio (see modules.py). */
export function mount({ element, server, ...given }) {
  const { defaults, opening: openingTab, examples, digits, offer, customModels, constants } = given;
  stopLoader();
  setConstants(constants);
  const find = (selector) => element.querySelector(selector);
  const models = new Map(given.models.map((model) => [model.name, model]));

  const page = { models, defaults, examples, customModels };
  page.start = firstState(page); // what a link is about is the same for everyone
  const remembered = models.get(readSetting(PHOTO_MODEL));
  if (remembered?.on_machine) defaults.photos = remembered.name;
  const first = firstState(page);
  page.first = { ...first, digits: { ...first.digits, ...openingTab } };
  menuModels.publish(models);

  const drawings = new WeakMap(); // from strokes to their data URL
  function drawingOf(strokes) {
    if (!drawings.has(strokes)) drawings.set(strokes, toDataUrl(strokes));
    return drawings.get(strokes);
  }

  const exampleUrl = (name, size) => new URL(`../../examples/${size}/${name}.webp`, import.meta.url).href;
  const previewOf = ({ example }) =>
    examples.some(({ name }) => name === example) ? exampleUrl(example, "preview") : "";
  const results = createResults(server, { drawingOf, previewOf, opening: page.first, onRefused });
  const menu = createMenu(element, { pageState, server, models, offer, own: defaults.digits, customModels });
  const tabs = createTabs(element, pageState.chooseTask);
  const pad = createPad(find("#pad"), { photos: ownPhotos, onPhoto: (file) => takeOnPad(file, false) });
  sketch.open({
    digits,
    onChange(picture, isStep) {
      pad.say("");
      pageState.chooseTask("digits", { picture }, isStep ? PUSH : REPLACE);
    },
  });
  const fits = createRadios(find("#fit"), (fit) => pageState.changeTab("photos", { fit }));
  const photo = createPhotoInput(find("#photo"), {
    upload: server.upload,
    examples,
    exampleUrl,
    onPicture(picture) {
      pageState.chooseTask("photos", { picture });
      if (picture && !picture.refused) sheet.close(); // it is in the picture's place
    },
    onMessage: () => pageState.chooseTask("photos"),
  });
  let tried = /** @type {any} */ (null); // a photo on the pad: {picture, before, isDropped}
  /** A photo on the pad that shows no digit is taken as any other if it was dropped, else offered; the drawing comes back. */
  function onRefused(sentence) {
    if (!tried || pageState.get().digits.picture !== tried.picture) return;
    const { picture, before, isDropped } = tried;
    const takeAsPhoto = () => pageState.chooseTask("photos", { picture });
    pageState.changeTab("digits", { picture: before }, REPLACE);
    if (isDropped) takeAsPhoto();
    else pad.say(sentence, takeAsPhoto);
  }
  function takeOnPad(file, isDropped) {
    const before = pageState.get().digits.picture;
    const onPicture = (picture) => {
      tried = { picture, before, isDropped };
      pageState.chooseTask("digits", { picture });
    };
    photo.take(file, { onPicture, say: pad.say });
  }
  let linked = /** @type {any} */ (null); // the photo of a link that was uploaded last
  function takeLinked(state) {
    const { task } = state;
    const { file } = state[task].picture ?? {};
    if (!file || file === linked) return;
    linked = file;
    const onPicture = (picture) => pageState.changeTab(task, { picture }, REPLACE);
    photo.take(file, { onPicture, say: task === "digits" ? pad.say : photo.say });
  }
  createCrop(find("#panel-photos"));
  createShare(element, pageState, page);
  const sheet = createSheet(element, pageState.chooseTask);
  acceptGlobalDrop(element, find(".veil"), (file, target) => {
    const isOnPaper = pageState.get().task === "digits" && target?.closest?.("#pad, .stage .view");
    if (isOnPaper) takeOnPad(file, true);
    else photo.take(file);
  });

  document.querySelector("#skip")?.addEventListener("click", () => {
    /** @type {any} */ (document.querySelector("#stage .picture"))?.focus();
  });

  const opening = syncHistory(element, pageState, page, menu.linked);

  function show(state) {
    tabs.show(state.task);
    sketch.show(state.digits.picture);
    photo.show(state.photos.picture, state.task === "photos" ? state.view.section : null);
    fits.set(
      FITS.map((fit, i) => [fit, FIT_NAMES[i]]),
      state.photos.fit,
    );
    menu.show(state);
  }

  pageState.subscribe(element, results.update);
  pageState.subscribe(element, show);
  pageState.subscribe(element, takeLinked);
  languageChange.subscribe(element, () => pageState.get() && show(pageState.get()));
  retryResult.subscribe(element, results.retry);
  addEventListener("online", () => element.isConnected && results.retry());
  pageState.open(opening?.state ?? page.first);
  if (opening?.model) menu.linked.open(opening.model);
  else if (remembered && !remembered.on_machine) useOnceItIsHere(remembered.name);

  /** The menu is as old as the server; meanwhile a model that it says must be downloaded may have been. */
  async function useOnceItIsHere(name) {
    const { photos } = pageState.get();
    const reply = await sendRequest(server, { kind: "models" });
    for (const model of reply?.result?.models ?? []) models.set(model.name, model);
    const isUntouched = pageState.get().photos === photos && photos === page.first.photos;
    if (isUntouched && models.get(name).on_machine) menu.use(models.get(name), REPLACE);
    menu.show(pageState.get());
  }
}

/** On a phone the inputs lie at the foot of the screen: a button opens one part, or closes it. */
function createSheet(element, chooseTask) {
  const buttons = [...element.querySelectorAll("[data-sheet]")];

  function open(name) {
    const isOpen = Boolean(name) && name !== element.dataset.sheet;
    element.dataset.sheet = isOpen ? name : "";
    element.firstElementChild.dataset.open = !isOpen ? "" : name === "model" ? "model" : "picture";
    for (const each of buttons) each.setAttribute("aria-expanded", String(isOpen && each.dataset.sheet === name));
    if (isOpen && name !== "model") chooseTask(name);
    if (isOpen) scrollTo({ top: 0 });
  }

  for (const button of buttons) button.addEventListener("click", () => open(button.dataset.sheet));
  // A tap beside it closes it, and does nothing else: on the picture it would rub out a square. Classes are beside it on purpose.
  const close = (event) => {
    const isBeside = event.target.closest("#result, #header") && !event.target.closest("[data-teach=class]");
    if (!element.dataset.sheet || !isBeside) return;
    event.stopPropagation();
    open("");
  };
  document.addEventListener("pointerdown", close, true);
  camera.subscribe(element, () => camera.isOn() && open(""));
  return { close: () => open("") };
}

/** The two tabs: with the keyboard, a tab is chosen by moving to it. */
function createTabs(element, onChoose) {
  const find = (selector) => element.querySelector(selector);
  for (const task of TASKS) find(`#tab-${task}`).addEventListener("click", () => onChoose(task));

  function show(task) {
    for (const each of TASKS) {
      find(`#tab-${each}`).setAttribute("aria-selected", String(each === task));
      find(`#panel-${each}`).hidden = each !== task;
    }
    rove(find("[role=tablist]"), 1, (tab) => tab.click());
  }

  return { show };
}

// "Copy link": a link to what is on the page, for places where the address bar does not show it.

const COPIED = english("Link copied.");
const WITHOUT = {
  photo: english(
    "Link copied, without your photo: links never contain photos, and the server deletes yours an hour after its last use.",
  ),
  drawing: english("Link copied, without the drawing, which is too long for one."),
  classes: english(
    "Link copied, without the classes you taught, which are too long for one: teach fewer, or a smaller model.",
  ),
  second: english("Link copied, without the second picture: a link can hold only example pictures."),
};

function createShare(element, pageState, page) {
  const message = element.querySelector(".shared");

  async function share() {
    const state = pageState.get();
    const href = linkInLanguage(`#${encodeLink(state, page)}`);
    const isCopied = await copyText(href);
    if (!isCopied) message.textContent = href;
    else message.textContent = WITHOUT[leftOut(state, page.models)] ?? COPIED;
  }

  element.querySelector("[data-share]").addEventListener("click", share);
  pageState.subscribe(element, () => {
    message.textContent = "";
  });
}
