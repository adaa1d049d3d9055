// What a map of attention shows, in words.

import { english, translate } from "../shared/language.js";
import { formatShare, isPooling, placeOf } from "./format.js";

/** The sentence under a map of attention. */
export function attentionSentence(result, { block, head, direction, query }) {
  const where =
    head < 0
      ? translate("block {block}, averaged over its {count} head|block {block}, averaged over its {count} heads", {
          block: block + 1,
          count: result.numHeads,
        })
      : translate("block {block}, head {head}", { block: block + 1, head: head + 1 });
  if (query === null && isPooling(result, block)) {
    return english(
      "What the *query of attention pooling* attends to after the last block: this model has no class token, and its output is read from the tokens in these shares.",
    );
  }
  if (query === null && !result.hasClassToken) {
    return translate(
      "How much attention each patch gets in {where}, averaged over *all tokens*: this model has no class token. A token divides its attention among all tokens, itself included: 100 %.",
      { where },
    );
  }
  const values = { where, place: query === null ? "" : placeOf(result, query) };
  if (direction === "to") {
    return query === null
      ? translate(
          "What attends to the *class token* in {where}. The stronger its colour, the more of its own attention a patch gives to it.",
          values,
        )
      : translate(
          "What attends to the *patch at {place}* in {where}. The stronger its colour, the more of its own attention a patch gives to it.",
          values,
        );
  }
  if (query === null) {
    const sentence = translate(
      "What the *class token* attends to in {where}. A token divides its attention among all tokens, itself included: 100 %.",
      values,
    );
    const isRead = result.pool.startsWith("cls") && result.predictions.length;
    return isRead
      ? `${sentence} ${translate("After the last block, the prediction is read from the class token.")}`
      : sentence;
  }
  return translate(
    "What the *patch at {place}* attends to in {where}. A token divides its attention among all tokens, itself included: 100 %.",
    values,
  );
}

/** What its value at a patch means. */
export function attentionReading(_result, view, patch, value) {
  const values = { share: formatShare(value) };
  const isItself = view.query === patch;
  if (view.direction === "from") {
    return isItself
      ? translate("attends to itself with *{share}*", values)
      : translate("attends to this patch with *{share}*", values);
  }
  return isItself
    ? translate("is attended to by itself with *{share}*", values)
    : translate("is attended to by this patch with *{share}*", values);
}
