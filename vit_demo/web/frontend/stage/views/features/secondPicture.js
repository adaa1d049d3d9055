// @ts-check
// The second picture of the features: an example, a photo of the visitor's own, or the picture on the stage, kept for the next.

import { isNew, make, makeOptions, onFile } from "../../../shared/dom.js";
import { currentLanguage, english, translate } from "../../../shared/language.js";
import { createRequestIds, sendPhoto } from "../../../shared/requests.js";

const NONE = "";
const KEEP = "keep";
const FILE = "file";
const NUM_DIGITS = 10;
const UPLOADING = english("Uploading …");

/** The examples of a task as [name, title]. */
export const examplesOf = (isDrawing, photos) =>
  isDrawing
    ? Array.from({ length: NUM_DIGITS }, (_, digit) => [`digit-${digit}`, translate("Digit {digit}", { digit })])
    : photos.map(({ name, title }) => [name, title]);

/**
 * Starts the menu of second pictures. `photos` are the example photos, {name, title}; `upload(file)` resolves to {path};
 * `exampleNow()` is the name of the example on the stage, if it is one; `onChoose(second)` gets null, {example} or {own}, an
 * id; `onNews(sentence)` what becomes of an upload.
 *
 * `get(second, result)` returns what a choice means beside a result, {source}, or null if it means nothing there, as a
 * photo does beside a drawing. `show(second, result)` shows it in the menu.
 */
export function createSecondPicture(select, input, { photos, upload, exampleNow, onChoose, onNews }) {
  const owned = []; // {id, name, source, isDrawing}
  const uploads = createRequestIds(); // a later choice replaces a photo that is still being uploaded
  let shown = /** @type {any} */ (null); // the result that the menu is for
  let second = /** @type {any} */ (null);

  function own(source, name) {
    const entry = { id: `own-${owned.length}`, name, source, isDrawing: shown.pixelated };
    owned.push(entry);
    onChoose({ own: entry.id });
  }

  async function take(file) {
    if (!file) return;
    const isCurrent = uploads.start();
    onNews(UPLOADING);
    const sent = await sendPhoto(upload, file);
    if (!isCurrent()) return;
    onNews(sent.error ?? "");
    if (sent.path && shown && !shown.pixelated) own({ upload: sent.path }, file.name.slice(0, 100));
  }

  select.addEventListener("change", () => {
    const { value } = select;
    uploads.start();
    onNews("");
    if (value === KEEP) keep();
    else if (value === FILE) input.click();
    else if (value === NONE) onChoose(null);
    else onChoose(owned.some(({ id }) => id === value) ? { own: value } : { example: value });
    select.value = optionFor(second); // until the choice is drawn
  });
  onFile(input, take);

  function keep() {
    const { source } = shown;
    const known = owned.find((entry) => entry.source === source);
    const example = exampleNow();
    if (example) onChoose({ example });
    else if (known) onChoose({ own: known.id });
    else own(source, shown.pixelated ? english("Your drawing") : english("Your photo"));
  }

  const optionFor = (choice) => choice?.example ?? choice?.own ?? NONE;

  function get(choice, result) {
    if (choice?.own) {
      const entry = owned.find(({ id }) => id === choice.own);
      return entry?.isDrawing === result.pixelated ? entry : null;
    }
    const name = choice?.example;
    const isOffered = examplesOf(result.pixelated, photos).some(([each]) => each === name);
    return isOffered ? { source: { example: name } } : null;
  }

  function show(choice, result) {
    shown = result;
    second = get(choice, result) && choice;
    const entries = owned.filter(({ isDrawing }) => isDrawing === result.pixelated);
    const options = [
      [NONE, english("None")],
      [KEEP, english("This one, beside the next")],
      ...(result.pixelated ? [] : [[FILE, english("A photo of your own …")]]),
      ...entries.map(({ id, name }) => [id, name]),
    ];
    if (isNew(select, [options, result.pixelated, currentLanguage()])) {
      const examples = makeOptions(examplesOf(result.pixelated, photos));
      select.replaceChildren(...makeOptions(options), make("optgroup", { label: english("Examples") }, ...examples));
    }
    select.value = optionFor(second);
  }

  return { get, show };
}
