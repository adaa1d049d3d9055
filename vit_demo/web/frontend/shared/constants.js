// @ts-check
// Facts that stand in Python alone, in frontend/constants.py, and are sent with the page.

/**
 * The facts by name; empty until a component is mounted, so they are read when they are needed.
 * @type {import("../types").Constants}
 */
export const constants = /** @type {any} */ ({});

export const setConstants = (given) => Object.assign(constants, given);
