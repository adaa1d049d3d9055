// @ts-check
// The look of the classes, which comes with their code.

export const styles = `
#columns .stage {
  .teach {
    .sure { min-height: 22px; margin: 16px 0; }
    .refused { max-height: 160px; overflow: auto; overflow-wrap: anywhere; margin: 0 0 16px; padding: 0; list-style: none; }
    .refused:empty { display: none; }
    .classes { display: grid; grid-template-columns: repeat(auto-fit, minmax(248px, 1fr)); gap: 16px; margin-bottom: 24px; }
    .box { display: grid; gap: 8px; align-content: start; padding: 16px; border: 1px solid var(--border-color-primary); border-radius: 14px; }
    .box > .field { display: grid; grid-template-columns: minmax(0, 1fr) 64px; gap: 8px; align-items: center; }
    .number { text-align: right; }
    .first .number { color: var(--accent-text); font-weight: 650; }
    .pictures { display: flex; flex-wrap: wrap; gap: 4px; align-items: center; min-height: 44px; }
    .pictures button { position: relative; overflow: hidden; width: 44px; height: 44px; border-radius: 8px; background: var(--track); }
    .pictures img { width: 100%; height: 100%; margin: 0; object-fit: cover; }
    .pictures .ink { filter: invert(1); image-rendering: pixelated; }
    .pictures button::after { content: "×"; position: absolute; inset: 0 0 auto auto; width: 16px; border-radius: 0 8px; background: rgb(0 0 0 / 55%); color: #fff; font-size: 14px; line-height: 16px; }
    .pictures button:is(:hover, :focus-visible)::after { width: 100%; border-radius: 0; font-size: 20px; line-height: 44px; }
    video { width: 100%; border-radius: 10px; }
    .box :is(p, p span) { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: center; margin: 0; }
    .film { touch-action: none; }
    .then { display: flex; flex-wrap: wrap; gap: 16px; align-items: center; }
    > .hint { max-width: 78ch; margin-top: 24px; }
  }
  @media (hover: hover) { .teach .pictures button:not(:hover, :focus-visible)::after { display: none; } }
  @media (hover: none) { .teach .pictures .hint { display: none; } }
  /* On a phone two classes stand above the open pad. */
  @media (max-width: 600px) {
    .teach .box { padding: 8px 12px; }
    .teach .classes { gap: 8px; }
    .teach .sure { margin: 4px 0 8px; }
  }
}`;
