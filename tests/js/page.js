// A page without a browser: the models of its menu, its defaults and its first state.

import { firstState } from "../../vit_demo/web/frontend/shared/link.js";

const model = (name, task, sizes, isHere = true) => ({
  name,
  task,
  on_machine: isHere,
  num_blocks: 6,
  default_patch_size: sizes[0],
  sizes: sizes.map((size) => ({ size })),
});
export const models = new Map(
  [
    model("digits-small", "digits", [4, 7]),
    model("photos-tiny", "photos", [12, 20]),
    model("vit-s16", "photos", [16], false),
  ].map((each) => [each.name, each]),
);
export const page = {
  models,
  defaults: { digits: "digits-small", photos: "photos-tiny", digit: 7 },
  examples: [{ name: "lion" }, { name: "tower" }],
  customModels: true,
};
page.start = firstState(page);
page.first = page.start;
