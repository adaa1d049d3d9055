// "Copy link": a link to what is on the page, for places where the address bar does not show it.

import { copyText } from "../shared/clipboard.js";
import { encodeLink, isWhole } from "../shared/link.js";

const COPIED = "Link copied.";
const WITHOUT_PHOTO = "Link copied, without your photo: it stays on this server for an hour, and is in no link.";
const WITHOUT_DRAWING = "Link copied, without the drawing, which is too long for one.";

export function createShare(element, pageState, models) {
  const message = element.querySelector(".shared");

  async function share() {
    const state = pageState.get();
    const { href } = new URL(`#${encodeLink(state, models)}`, location.href);
    const isCopied = await copyText(href);
    if (!isCopied) message.textContent = href;
    else if (isWhole(state)) message.textContent = COPIED;
    else message.textContent = state.task === "photos" ? WITHOUT_PHOTO : WITHOUT_DRAWING;
  }

  element.querySelector("[data-share]").addEventListener("click", share);
  pageState.follow(element, () => {
    message.textContent = "";
  });
}
