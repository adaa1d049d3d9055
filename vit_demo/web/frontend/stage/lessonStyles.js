// @ts-check
// The look of a lesson, which comes with its code.

export const styles = `
#columns .stage {
  /* A lesson's task, which stays in sight; its height does not change when the words arrive. */
  .lesson {
    position: sticky; z-index: 5; top: 0; order: -1; grid-column: 1 / -1; display: grid; grid-template-columns: minmax(0, 1fr) auto auto; gap: 0 16px; align-items: center; min-height: 64px;
    margin-bottom: -48px; padding: 8px 8px 8px 16px; border-radius: 12px; background: var(--soft);
    .place { grid-column: 1; min-height: 20px; color: var(--accent-text); font-size: 13px; line-height: 20px; }
    .task { grid-column: 1; min-height: 22px; font-weight: 600; line-height: 22px; text-wrap: pretty; }
    .deeds { grid-area: 1 / 2 / 3 / 3; display: flex; gap: 16px; align-items: center; }
    a { color: var(--accent-text); font-size: 13px; font-weight: 600; white-space: nowrap; text-underline-offset: 3px; }
    .close { grid-area: 1 / 3 / 3 / 4; }
    .answer { grid-column: 1 / -1; max-width: 90ch; max-height: 30svh; margin-top: 8px; overflow-y: auto; }
  }
  /* What a task leads to stands below the band. */
  .lesson:not([hidden]) ~ .explore .blocks { scroll-margin-top: calc(16px + var(--band, 72px)); }
  /* Heads that a task is about stand beside picture and answers. */
  @container (min-width: 880px) {
    .lesson:not([hidden]) ~ .explore:has(.more[aria-expanded="true"]) {
      --S: 240px; gap: 0 24px; grid-template-columns: var(--S) 272px minmax(0, 1fr);
      .blocks { grid-area: 3 / 3 / 7 / 4; margin-top: 0; scroll-margin-top: calc(60px + var(--band, 72px)); } /* the headline stays in sight */
      .cells { row-gap: 4px; }
      .head-name { margin: 0; line-height: 16px; }
      .fewest { display: none; }
      .words button { font-size: 13px; }
    }
  }
  /* On a phone the task is below what can be done. */
  @container (max-width: 559px) {
    .lesson {
      gap: 0 8px; margin-bottom: -28px; padding: 4px 4px 8px 12px;
      .task { grid-column: 1 / -1; padding-right: 8px; }
      .answer { max-height: 22svh; }
      &:has(.answer:not([hidden])) .task { display: none; } /* what they are about is in sight, too */
      .deeds { grid-row: 1; gap: 12px; }
      .quiet { padding: 4px 12px; }
      a { display: grid; align-items: center; min-height: 44px; }
      .close { grid-row: 1; min-width: 44px; }
    }
  }
  @media print { .lesson :is(.deeds, .close) { display: none; } }
  /* The first screen is as high with the band as without it. */
  .lesson:not([hidden]) ~ .explore { --S: clamp(320px, 100svh - 490px, 720px); }
  .lesson:not([hidden]) ~ .explore :is(.mechanism, kbd, .ask) { display: none; }
  .lesson:not([hidden]) ~ .explore .said { height: auto; min-height: 36px; }
  @container (max-width: 879px) {
    .lesson:not([hidden]) ~ .explore { --S: min(46cqw, 400px); }
  }
  @container (max-width: 559px) { .lesson:not([hidden]) ~ .explore { --S: min(100cqw, 100svh - 500px); } }
}`;
