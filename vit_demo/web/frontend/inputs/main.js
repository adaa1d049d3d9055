// The inputs: they show the page's state and change it; nothing else holds a choice.

import { createPad } from "../pad/pad.js";
import { toDataUrl } from "../pad/strokes.js";
import { followHistory } from "../shared/browserHistory.js";
import { retryResult } from "../shared/channels.js";
import { english, languageChange } from "../shared/language.js";
import { FITS, firstState } from "../shared/link.js";
import { PUSH, pageState, REPLACE } from "../shared/pageState.js";
import { sendRequest } from "../stage/requests.js";
import { takeFromAnywhere } from "./anywhere.js";
import { createMenu } from "./menu.js";
import { createModelView } from "./modelView.js";
import { createPhotoInput } from "./photoInput.js";
import { createRadios } from "./radios.js";
import { createResults } from "./results.js";
import { createShare } from "./share.js";
import { createTabs } from "./tabs.js";

const FIT_NAMES = [english("Centre"), english("Stretch"), english("Keep aspect ratio")];
const MEMORY = "vit_demo.photo-model"; // in the browser's storage

/** Starts the inputs in their element; called by Gradio (see components/modules.py). */
export function mount({ element, server, upload, ...constants }) {
  const { defaults, examples, digits, offer, customModels } = constants;
  const find = (selector) => element.querySelector(selector);
  const models = new Map(constants.models.map((model) => [model.name, model]));

  const remembered = models.get(recall());
  if (remembered?.on_machine) defaults.photos = remembered.name;
  const page = { models, defaults, examples, customModels };
  page.first = firstState(page);

  const drawings = new WeakMap(); // from strokes to their data URL
  function drawingOf(strokes) {
    if (!drawings.has(strokes)) drawings.set(strokes, toDataUrl(strokes));
    return drawings.get(strokes);
  }

  const results = createResults(server, { drawingOf, opening: page.first });
  const menu = createMenu(element, { pageState, server, models, offer, customModels, remember });
  const tabs = createTabs(element, pageState.chooseTask);
  const pad = createPad(find("#pad"), {
    digits,
    onChange: (picture, isStep) => pageState.changeTab("digits", { picture }, isStep ? PUSH : REPLACE),
  });
  const fits = createRadios(find("#fit"), "fit-title", (fit) => pageState.changeTab("photos", { fit }));
  const photo = createPhotoInput(find("#photo"), {
    upload,
    examples,
    exampleUrl: (name, size) => new URL(`../../examples/${size}/${name}.webp`, import.meta.url).href,
    onPicture: (picture) => pageState.showPicture("photos", picture),
    onMessage: () => pageState.chooseTask("photos"),
  });
  createModelView(find("#model-view"));
  createShare(element, pageState, models);
  takeFromAnywhere(element, find(".veil"), photo.take);

  document.querySelector("#skip")?.addEventListener("click", () => {
    document.querySelector("#stage .sections [aria-current=true]")?.focus();
  });

  const opening = followHistory(element, pageState, page, menu.linked);

  function show(state) {
    tabs.show(state.task);
    pad.show(state.digits.picture);
    photo.show(state.photos.picture, state.task === "photos");
    fits.set(
      FITS.map((fit, i) => [fit, FIT_NAMES[i]]),
      state.photos.fit,
    );
    menu.show(state);
  }

  pageState.follow(element, results.follow);
  pageState.follow(element, show);
  languageChange.follow(element, () => pageState.get() && show(pageState.get()));
  retryResult.follow(element, results.retry);
  addEventListener("online", () => element.isConnected && results.retry());
  pageState.open(opening?.state ?? page.first);
  if (opening?.model) menu.linked.open(opening.model, opening.state);
  else if (remembered && !remembered.on_machine) useOnceItIsHere(remembered.name);

  /** The menu is as old as the server; meanwhile a model that it says must be downloaded may have been. */
  async function useOnceItIsHere(name) {
    const { photos } = pageState.get();
    const reply = await sendRequest(server, { kind: "models" });
    for (const model of reply.result?.models ?? []) models.set(model.name, model);
    const isUntouched = pageState.get().photos === photos && photos === page.first.photos;
    if (isUntouched && models.get(name).on_machine) menu.use(models.get(name), REPLACE);
    menu.show(pageState.get());
  }
}

/** The photo model that was chosen last. */
function recall() {
  try {
    return localStorage.getItem(MEMORY);
  } catch {
    return null; // a browser without storage
  }
}

function remember(name) {
  try {
    localStorage.setItem(MEMORY, name);
  } catch {
    // then it is forgotten
  }
}
