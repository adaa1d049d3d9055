// @ts-check
// The switch between the two ways of Build, at the top of each.

const html = `<div class="switch two-ways" role="group" aria-label="Build">
  <button type="button" data-section="build">Train a network</button>
  <button type="button" data-section="teach">Teach your own classes</button></div>`;

/** The two ways of Build, of which one is open: "build" or "teach". */
export const waysHtml = (open) => html.replace(`"${open}"`, `"${open}" aria-pressed="true"`);
