// @ts-check
// What a part of the film is, in words: a token with its numbers, or how much of the attention a thread or an arrow is.

import { english, translate } from "../../shared/language.js";
import { formatNumber, formatShare, placeOf } from "../format.js";
import { attentionOf, othersOf, tokensAt } from "./plan.js";

const STRONGEST = 3; // numbers that are told
const LOOKS = english("Block {block}: *{from}* looks at *{to}*, {share} of its attention.");
const STRIPE = english(
  "*{name}* as {width} numbers. The stripes show some: violet is above 0, orange below; strongest {numbers}.",
);

/** {words, step} of a part that `partAt` gives, at a moment; `step` is what its link opens of the eight steps. */
export function explain({ result, numbers, film }, { beat, block, depth }, part) {
  const { hasClassToken, tokenOf } = result;
  const first = Number(hasClassToken);

  function nameOf(token) {
    if (token < 0) return translate("average of all tokens");
    if (token < first) return translate("class token");
    if (token < film.numPrefix) return translate("register {number}", { number: token - first + 1 });
    return placeOf(result, tokenOf.indexOf(token));
  }

  function look({ block, from, to, share, others }) {
    const seen = to === null ? othersOf(others) : to === from ? translate("itself") : nameOf(to);
    return translate(LOOKS, { block: block + 1, from: nameOf(from), to: seen, share: formatShare(share) });
  }

  if (part.share !== undefined) {
    const fromClassToken = part.from === 0 && hasClassToken;
    const patch = tokenOf.indexOf(part.from);
    const step = { step: 3, block: part.block, head: 0, fromClassToken, ...(patch >= 0 && { patch }) };
    return { words: look(part), step };
  }
  const { token } = part;
  const { components, width } = numbers;
  const values = tokensAt(numbers, result, depth).subarray(token * components.length, (token + 1) * components.length);
  const order = [...values.keys()].sort((a, b) => Math.abs(values[b]) - Math.abs(values[a])).slice(0, STRONGEST);
  const strongest = order.map((i) => `#${components[i] + 1}: ${formatNumber(values[i])}`).join(", ");
  const newest = block - Number(beat.kind === "look"); // whose threads are there
  const share = newest < 0 ? 0 : attentionOf(numbers, result, newest)[token];
  const stripe = translate(STRIPE, { name: nameOf(token), width, numbers: strongest });
  const words =
    newest < 0 ? stripe : `${stripe} ${look({ block: newest, from: film.collector, to: token, share, others: 0 })}`;
  const patch = tokenOf.indexOf(token);
  return { words, step: patch < 0 ? { step: 2 } : { step: 1, patch } };
}
