// @ts-check
// The language of the page. The English text in the code is the key of a catalogue, ../languages/LANGUAGE.json, which is
// fetched when its language is chosen; English needs none.
//
// A text with values is made by `translate` each time it is shown. All other words stay English in HTML, in JavaScript
// (marked by `english`, so that tests find them) and in what the server sends, and `header/main.js` replaces them on
// the page. So a change of the language needs no reload, and the way back is exact.

import { createChannel, readSetting, storeSetting } from "./pageState.js";

export const LANGUAGES = { en: "English", es: "Español", zh: "中文", de: "Deutsch", fr: "Français" };

/** The language, after it has changed; whoever shows texts with values writes them again. */
export const languageChange = createChannel("en");

const LINKED = "language"; // in the address
const KEY = "vit_demo-language"; // in the browser's storage
const SENTENCE_END = /(?<=[.!?]\*?) (?=[A-Z0-9“\u2068])/;
const VALUE = /\u2068(.*?)\u2069/gs; // as sentences.py marks them
const SERVER_NUMBER = /(?<![\w./,-])(?:\d{1,3}(?:,\d{3})+|\d+\.\d+)(?![\w/]|[.,]\d)/g;

let language = "en";
let catalogue = new Map();
let plurals = new Intl.PluralRules("en");
let latest = 0; // a language that arrives after a later choice is not shown

export const currentLanguage = () => language;

/** Marks a text that is put on the page in English, and translated there. */
export const english = (text) => text;

/**
 * A text in the page's language; English where the catalogue lacks it. `{name}` in it stands for `values.name`. A text of
 * two forms, `one|other`, is in the form for `values.count`. Without values, it may be several sentences of the server,
 * which marks the values in them.
 *
 * @param {string} text
 * @param {any} [values]
 */
export function translate(text, values = null) {
  if (!values) return ofServer(text) ?? text.split(SENTENCE_END).map(sentenceOfServer).join(" ");
  const found = catalogue.get(text);
  return fill(found === undefined ? englishForm(text, values) : formOf(found, values), values);
}

const BOLD = /(?<![\p{Lu}\p{Ll}\p{Nd}])\*|\*(?![\p{Lu}\p{Ll}\p{Nd}])/u;

/** The parts of a text, of which every second is bold: between *stars*. A star within a word, as in a name, is none. */
export function boldParts(text) {
  const parts = text.split(BOLD);
  return parts.length % 2 ? parts : [text];
}

/** A text without its *stars*. */
export const plain = (text) => boldParts(text).join("");

/** The name of a class in the page's language, if its catalogue has it. */
export const translateName = (name) => catalogue.get(name) ?? name;

/** A text of the server, whose values are {0}, {1} and so on in its key; undefined where the catalogue lacks it. */
function ofServer(text) {
  const values = Array.from(text.matchAll(VALUE), ([, value]) => serverValue(value));
  let next = 0;
  const found = catalogue.get(text.replace(VALUE, () => `{${next++}}`));
  return found && fill(found, values);
}

const sentenceOfServer = (sentence) => ofServer(sentence) ?? sentence.replace(VALUE, "$1");

/** A value in place of one of the server's. */
export const marked = (value) => `\u2068${value}\u2069`;

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

/** The form for a count; a catalogue has an object of forms by the categories of Intl.PluralRules. */
const formOf = (found, { count }) =>
  typeof found === "string" ? found : (found[plurals.select(count)] ?? found.other);

function englishForm(text, { count }) {
  const [one, other = one] = text.split("|");
  return count === 1 ? one : other;
}

/** A value as it is in the server's sentence, with its numbers as the language writes them. */
const serverValue = (value) =>
  value.replace(SERVER_NUMBER, (text) => {
    const digits = text.split(".")[1]?.length ?? 0;
    return formatDecimals(Number(text.replaceAll(",", "")), digits, true);
  });

/** Uses a catalogue from now on: an object from English texts to translations, strings or forms by plural category. */
export function useCatalogue(name, texts) {
  language = name;
  catalogue = new Map(Object.entries(texts));
  plurals = new Intl.PluralRules(name);
  languageChange.publish(name);
}

/** Changes the language, unless a later one is chosen; resolves to false if it is not there: then the page stays as it is. */
async function setLanguage(name) {
  const id = ++latest;
  try {
    const url = new URL(`../languages/${name}.json`, import.meta.url);
    const texts = name === "en" ? {} : await (await fetch(url)).json();
    if (id === latest) useCatalogue(name, texts);
    return true;
  } catch (error) {
    console.error(error);
    return id !== latest; // a later choice is what counts
  }
}

/** As `setLanguage`, for a visitor's choice, which this browser keeps. */
export async function chooseLanguage(name) {
  if (!(await setLanguage(name))) return false;
  if (language !== name) return true;
  storeSetting(KEY, name);
  const url = new URL(location.href);
  url.searchParams.delete(LINKED); // it was that of a link
  history.replaceState(history.state, "", url);
  return true;
}

/** An address that opens the page in the language of now; of English it says nothing. */
export function linkInLanguage(address) {
  const url = new URL(address, location.href);
  if (language === "en") url.searchParams.delete(LINKED);
  else url.searchParams.set(LINKED, language);
  return url.href;
}

/** The language of a link, else the visitor's choice, else the first language of the browser that there is, else English. */
function preferred() {
  const linked = new URLSearchParams(location.search).get(LINKED);
  const wanted = [linked, readSetting(KEY), ...navigator.languages.map((each) => each.split("-")[0].toLowerCase())];
  return wanted.find((each) => Object.hasOwn(LANGUAGES, each ?? "")) ?? "en";
}

const isServed = import.meta.url.startsWith("http"); // not in a notebook, which can fetch nothing

/** Resolves when the page's first language is there. */
export const languageReady = isServed && preferred() !== "en" ? setLanguage(preferred()) : Promise.resolve();

const formatters = new Map();

function formatter(options) {
  const key = `${language} ${JSON.stringify(options)}`;
  if (!formatters.has(key)) formatters.set(key, new Intl.NumberFormat(language, options));
  return formatters.get(key);
}

/** A number with a true minus sign. */
const format = (value, options) => formatter(options).format(value).replace("-", "−");

/** A number with so many decimals. */
export const formatDecimals = (value, digits, useGrouping = false) =>
  format(value, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping });

/** A number with so many significant digits. */
export const formatSignificant = (value, digits) =>
  format(value, { minimumSignificantDigits: digits, maximumSignificantDigits: digits, useGrouping: false });

/** A whole number in groups of three digits. */
export const formatInteger = (value) => formatter({}).format(value);

/** @type {[number, string][]} */
const UNITS = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** A large count with three significant digits and a unit: 5.72 M. Below 10,000 all digits. */
export function formatCount(value) {
  if (value < 10_000) return formatInteger(value);
  const [size, unit] = UNITS.find(([size]) => value >= size * 0.9995) ?? UNITS[3];
  return `${formatSignificant(value / size, 3)}\u00a0${unit}`;
}
