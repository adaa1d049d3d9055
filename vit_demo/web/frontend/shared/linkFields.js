// @ts-check
// Kinds of fields of a link: how a value is written, and read: null for a text that makes no sense.

export const NAME = /^[a-z][a-z0-9_-]{0,39}$/;
export const LARGEST = 100_000;

const number = (lowest, highest) => ({ write: Number, read: (text) => integer(text, lowest, highest) });
const lessOne = (value) => (value === null ? null : value - 1);
/** Counted from 0 on the page, from 1 in an address. */
const place = (highest) => ({ write: (index) => index + 1, read: (text) => lessOne(integer(text, 1, highest)) });

/** The kinds by name, or what makes one. */
export const kinds = {
  number,
  place,
  anyNumber: number(0, LARGEST),
  block: place(1000),
  patch: place(10_000),
  patches: { write: encodePatches, read: decodePatches },
  heads: { write: encodeHeads, read: decodeHeads },
  placeInPictures: { write: encodePlace, read: decodePlace },
  name: { write: String, read: (text) => (NAME.test(text) ? text : null) },
  oneOf: (...words) => ({ write: String, read: (text) => (words.includes(text) ? text : null) }),
  flag: (word) => ({ write: () => word, read: (text) => text === word || null }),
  percent: {
    write: (share) => Math.round(100 * share),
    read(text) {
      const found = integer(text, 0, 100);
      return found === null ? null : found / 100;
    },
  },
  /** What makes a training again: 366 steps, seed 0, of 5,000 digits, a learning rate, "shuffled" or nothing. */
  training: {
    write: ({ steps, seed, num_digits: digits, learning_rate: rate, shuffle_labels: shuffled }) =>
      [steps, seed, digits, rate, ...(shuffled ? ["shuffled"] : [])].join(),
    read(text) {
      const [steps, seed, digits, rate, shuffled] = text.split(",", 5);
      const [numSteps, number, numDigits] = [steps, seed, digits].map((one) => integer(one, 0, LARGEST));
      if (!numSteps || number === null || numDigits === null || !/^0(\.\d{1,6})?$/.test(rate ?? "")) return null;
      const numbers = { steps: numSteps, seed: number, num_digits: numDigits, learning_rate: Number(rate) };
      return { ...numbers, shuffle_labels: shuffled === "shuffled" };
    },
  },
};

/** Words with commas between them, each once; null for none. */
export function readWords(/** @type {string} */ text) {
  const words = [...new Set(text.split(",").map((word) => word.trim()))].filter(Boolean);
  return words.length ? words : null;
}

/** A whole number in a range that was written with digits alone, else null. */
export function integer(text, lowest, highest) {
  if (!/^\d{1,6}$/.test(text ?? "")) return null;
  const value = Number(text);
  return lowest <= value && value <= highest ? value : null;
}

const MOST_RANGES = 500;

/** Patches as numbers and ranges: [0, 1, 2, 6] is "1-3,7". */
function encodePatches(patches) {
  const ranges = [];
  for (const patch of patches) {
    const last = ranges.at(-1);
    if (last?.[1] === patch - 1) last[1] = patch;
    else ranges.push([patch, patch]);
  }
  return ranges.map(([first, last]) => (first === last ? first + 1 : `${first + 1}-${last + 1}`)).join(",") || null;
}

function decodePatches(text) {
  const patches = new Set();
  for (const range of text.split(",", MOST_RANGES)) {
    const [first, last, ...rest] = range.split("-").map((part) => integer(part, 1, 10_000));
    if (!first || last === null || rest.length) return null;
    for (let patch = first; patch <= (last ?? first); patch++) patches.add(patch - 1);
  }
  return patches.size ? [...patches].sort((a, b) => a - b) : null;
}

/** (block, head) of each as "2.1,4.3"; at most 1,000, as the server takes. */
function encodeHeads(heads) {
  return heads.map(([block, head]) => `${block + 1}.${head + 1}`).join();
}

function decodeHeads(text) {
  if (!/^([1-9]\d{0,3}\.[1-9]\d{0,3}(,(?=.)|$)){1,1000}$/.test(text)) return null;
  const names = [...new Set(text.split(","))];
  return names.map((name) => name.split(".").map(lessOne));
}

/** A patch, and in which of two pictures. */
function encodePlace({ patch, picture }) {
  return picture ? `${patch + 1}:2` : patch + 1;
}

function decodePlace(text) {
  const [patch, picture, ...rest] = text.split(":");
  const place = { picture: picture === "2" ? 1 : 0, patch: (integer(patch, 1, 10_000) ?? 0) - 1 };
  return place.patch < 0 || rest.length || ![undefined, "2"].includes(picture) ? null : place;
}
