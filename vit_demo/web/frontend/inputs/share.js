// "Copy link": a link to what is on the page, for places where the address bar does not show it.

import { copyText } from "../shared/clipboard.js";
import { english } from "../shared/language.js";
import { encodeLink, leftOut } from "../shared/link.js";

const COPIED = english("Link copied.");
const WITHOUT = {
  photo: english(
    "Link copied, without your photo: links never contain photos, and the server deletes yours an hour after its last use.",
  ),
  drawing: english("Link copied, without the drawing, which is too long for one."),
  second: english("Link copied, without the second picture: a link can hold only example pictures."),
};

export function createShare(element, pageState, models) {
  const message = element.querySelector(".shared");

  async function share() {
    const state = pageState.get();
    const { href } = new URL(`#${encodeLink(state, models)}`, location.href);
    const isCopied = await copyText(href);
    if (!isCopied) message.textContent = href;
    else message.textContent = WITHOUT[leftOut(state)] ?? COPIED;
  }

  element.querySelector("[data-share]").addEventListener("click", share);
  pageState.follow(element, () => {
    message.textContent = "";
  });
}
