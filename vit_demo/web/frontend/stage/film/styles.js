// @ts-check
// The look of the film, which comes with its code.

export const styles = `
.stage:not(.filming) :is(.film, .film-acts, .film-line, .film-note, .film-back, .film-card) { display: none !important; }
#columns .stage.filming.filming {
  .explore { grid-template-columns: minmax(0, 1fr) 320px; }
  .view { aspect-ratio: auto; height: var(--S); box-shadow: none; background: none; }
  :is(.picture, .nib, .outdated, .predictions .note, .blocks :is(.hint, .answers)) { visibility: hidden; }
  :is(.acts, .line, .meaning, .photo-ways) { display: none !important; }
  .mechanism { display: none; }
  .headline { font-size: 20px; line-height: 28px; }
  .headline .next-act { display: block; font-size: 16px; }
  .predictions .number:not(:empty) ~ .track i { transition: width 0.25s, height 0.25s; }
  .cells { grid-template-columns: repeat(var(--blocks), minmax(0, 72px)); }
  .film { position: absolute; max-width: none; border-radius: 0; cursor: pointer; }
  .film.front { pointer-events: none; }
  .film.faces { outline: none; }
  .view:has(> .faces:focus-visible) { outline: 2px solid var(--accent); outline-offset: 4px; }
  .film-card { position: absolute; z-index: 1; box-sizing: border-box; padding: 8px 12px; border-radius: 10px; background: var(--raised); box-shadow: 0 0 0 1px var(--border-color-primary), 0 8px 24px rgb(0 0 0 / 18%); font-size: 13px; line-height: 18px; }
  .film-acts { grid-area: 3 / 1 / 4 / 2; display: flex; gap: 4px 16px; align-items: center; min-height: 40px; margin: 4px 0 8px; }
  .film-acts .switch button { padding-inline: 8px; font-size: 13px; }
  .film-acts > .link { min-width: 112px; font-size: 13px; line-height: 16px; text-align: left; }
  .more-of-step { white-space: nowrap; }
  .film-back { display: block; margin: 4px 0 8px; }
  .film-line { grid-area: 5 / 1 / 6 / 2; display: grid; grid-template-columns: minmax(0, 1fr) repeat(4, auto); gap: 4px; align-items: center; min-height: 40px; margin-top: 8px; }
  .film-line .tool { display: grid; place-items: center; width: 36px; height: 36px; border-radius: 999px; color: var(--dim); }
  .film-line svg { width: 20px; fill: none; stroke: currentcolor; stroke-width: 1.7; stroke-linecap: round; stroke-linejoin: round; }
  .film-line input { appearance: none; width: 100%; height: 32px; margin: 0; border-radius: 8px; background: var(--beats), linear-gradient(to right, color-mix(in srgb, var(--accent) 30%, var(--surface)) var(--played), var(--track) var(--played)); cursor: ew-resize; touch-action: none; }
  .film-line input::-webkit-slider-thumb { appearance: none; width: 6px; height: 32px; border-radius: 3px; background: var(--accent); }
  .film-line input::-moz-range-thumb { width: 6px; height: 32px; border: 0; border-radius: 3px; background: var(--accent); }
  .film-note { grid-area: 5 / 2 / 7 / 3; display: grid; gap: 8px; align-content: start; justify-items: start; margin-top: 8px; color: var(--dim); font-size: 13px; line-height: 20px; }
  .film-note .link { text-align: left; }
  @container (max-width: 879px) {
    .explore { grid-template-columns: minmax(0, 1fr) 236px; }
    .film-acts { column-gap: 8px; }
    .headline { font-size: 18px; line-height: 24px; }
  }
  @container (max-width: 559px) {
    .explore > :is(.film-acts, .film-line, .film-note) { width: 100%; }
    .lesson .task { display: none; }
    .explore.explore .said { display: block; order: 0; width: 100%; height: 104px; }
    .headline { min-height: 0; font-size: 16px; line-height: 20px; }
    .headline .next-act { font-size: 16px; }
    .view { width: 100%; }
    .all-classes { display: none; }
    .predictions:not(.fixed) .bars button { min-height: 28px !important; }
    .predictions:not(.fixed) .bars li.first { display: list-item !important; }
    .predictions:not(.fixed) .bars:has(li:nth-child(n + 4).first) li:nth-child(3) { display: none; }
    @media (max-height: 720px) { .predictions:not(.fixed) .bars:has(li:nth-child(n + 3).first) li:nth-child(2) { display: none; } }
    @media (max-height: 720px) {
      .explore { --S: min(100cqw, 100svh - 404px); }
      .explore.explore .said { height: 84px; }
    }
    .film-line { order: 3; margin-top: 0; }
    .film-acts { order: 4; margin: 0; }
    .film-acts .switch { flex: 0 0.1 224px; min-width: 0; }
    .film-acts .switch button { min-width: 0; line-height: 16px; white-space: normal; }
    .film-acts > .link { flex: 0 4 auto; }
    .film-acts:has(> .keep:not([hidden])) > .switch { display: none; }
    .film-acts > .keep { flex: none; }
    .film-note { order: 7; margin-top: 16px; }
  }
  @media (pointer: coarse) {
    .film-line .tool { width: 44px; height: 44px; }
    .film-line input { height: 44px; }
    .film-line input::-webkit-slider-thumb { height: 44px; }
    .film-acts button { min-height: 44px; }
  }
  @media (prefers-reduced-motion: reduce) { .predictions .track i { transition: none; } }
}
.dark .of-digit .film.faces { filter: invert(0.91) hue-rotate(180deg); }`;
