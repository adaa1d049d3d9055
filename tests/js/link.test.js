// What is in a link: the state of the page, drawings as text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PENS } from "../../vit_demo/web/frontend/pad/strokes.js";
import { decodeStrokes, encodeStrokes, rounded } from "../../vit_demo/web/frontend/pad/strokesInLink.js";
import { decodeLink, encodeLink, leftOut } from "../../vit_demo/web/frontend/shared/link.js";
import { createPageState } from "../../vit_demo/web/frontend/shared/pageState.js";
import { fixture, randomNumbers } from "./helpers.js";
import { page } from "./page.js";

const widths = Object.values(PENS);

const stroke = (count, seed, width = widths[1]) => {
  const values = randomNumbers(2 * count, seed).map((value) => (value + 1) / 2);
  return { width, points: Array.from({ length: count }, (_, i) => [values[2 * i], values[2 * i + 1]]) };
};

test("a preview of a link draws with the same pens", () => {
  assert.deepEqual(fixture.pens, widths);
});

test("a finished drawing survives its text to the last digit", () => {
  const strokes = [stroke(60, 1), stroke(1, 2, widths[0]), stroke(30, 3, widths[2])].map((each) => rounded(each, 0));
  const text = encodeStrokes(strokes, widths);
  assert.match(text, /^[\w-]+$/);
  assert.deepEqual(decodeStrokes(text, widths), strokes);
});

test("a long drawing is thinned until it fits, and one that never fits has no text", () => {
  const wave = Array.from({ length: 3000 }, (_, i) => [i / 3000, 0.5 + 0.4 * Math.sin(i / 200)]);
  const text = encodeStrokes([{ width: widths[1], points: wave }], widths);
  assert.ok(text.length <= 2000);
  const [{ points }] = decodeStrokes(text, widths);
  assert.deepEqual(
    points.at(-1).map((value) => value.toFixed(3)),
    wave.at(-1).map((value) => value.toFixed(3)),
  );
  assert.equal(
    encodeStrokes(
      Array.from({ length: 900 }, (_, i) => stroke(1, i)),
      widths,
    ),
    null,
  );
});

test("a text that is no drawing gives none", () => {
  const good = encodeStrokes([stroke(3, 1)], widths);
  for (const text of ["", "!", "A", "____", good.slice(0, -2), `${good}AA`, "A".repeat(2001)]) {
    assert.equal(decodeStrokes(text, widths), null, text.slice(0, 20));
  }
});

test("a link gives back its state", () => {
  const view = {
    ...{
      lesson: 6,
      section: "features",
      method: "rollout",
      block: 2,
      head: 1,
      direction: "to",
      dropped: [4, 5, 30],
      silent: [
        [0, 1],
        [4, 2],
      ],
      beat: 3,
      pinned: 8,
      label: 4,
      against: 9,
      opacity: 0.35,
      smooth: true,
      plain: true,
      scale: "own",
    },
    features: {
      ...{ mode: "pca", block: 3, k: 9, background: true, opacity: 0 },
      pinned: { picture: 1, patch: 17 },
      second: { example: "tower" },
    },
    tour: { step: 4, patch: 3, block: 0, head: 2, filter: 11, fromClassToken: true },
    compare: [
      { preset: "photos-tiny", patchSize: 12, method: "attention", label: null, without: false },
      { preset: "org/model@v1.0", patchSize: 16, method: "relevance", label: 0, without: true },
      { preset: "photos-tiny", patchSize: 12, method: "rollout", label: null, without: true },
    ],
    network: {
      start: "MNIST from scratch",
      fields: { image_size: 28, num_classes: 0, pool: "cls+mean", class_token: false, pos_embed: "none" },
    },
    training: null,
  };
  const drawing = [rounded(stroke(20, 5))];
  for (const state of [
    page.first,
    { ...page.first, view },
    { ...page.first, digits: { picture: { strokes: drawing }, preset: "digits-small", patchSize: 7 } },
    { ...page.first, digits: { ...page.first.digits, picture: null } },
    { ...page.first, digits: { ...page.first.digits, picture: { example: "test-999" } } },
    {
      ...page.first,
      task: "photos",
      photos: { picture: { example: "tower" }, preset: "photos-tiny", patchSize: 20, fit: "keep", words: null },
      view: { ...view, block: null },
    },
  ]) {
    const link = encodeLink(state, page);
    assert.deepEqual(decodeLink(`#${link}`, page) ?? { state: page.first, model: null }, { state, model: null });
    assert.ok(link.length < 2200 && leftOut(state) === null);
  }
});

test("words are in a link where the model takes any, and whatever a link says is read as words or not at all", () => {
  const ofWords = { name: "clip", task: "photos", on_machine: true, takes_words: true, default_patch_size: 16 };
  const models = new Map([...page.models, ["clip", { ...ofWords, sizes: [{ size: 16 }] }]]);
  const withClip = { ...page, models };
  const words = ["a lion", "🦁 & <b>", "שלום", "100 %"];
  const photos = { ...page.first.photos, preset: "clip", patchSize: 16, words };
  const state = { ...page.first, task: "photos", photos };
  const link = encodeLink(state, withClip);
  assert.deepEqual(decodeLink(link, withClip).state, state);
  const other = { ...state, photos: { ...page.first.photos, words } };
  assert.doesNotMatch(encodeLink(other, withClip), /words/, "a model of fixed classes has no words");
  const read = (text) => decodeLink(`tab=photos&words=${encodeURIComponent(text)}`, withClip).state.photos.words;
  assert.deepEqual(read(" a , b,,a"), ["a", "b"]);
  for (const none of ["", " , "]) assert.equal(read(none), null);
});

test("a link holds only what differs from the start, which is the same for everyone", () => {
  const { first } = page;
  assert.equal(encodeLink(first, page), "");
  assert.equal(encodeLink({ ...first, digits: { ...first.digits, patchSize: 7 } }, page), "patch_size=7");
  assert.equal(encodeLink({ ...first, view: { ...first.view, section: "steps" } }, page), "section=steps");
  assert.equal(encodeLink({ ...first, task: "photos" }, page), "tab=photos");
  const remembered = { ...page, first: { ...first, photos: { ...first.photos, preset: "vit-s16", patchSize: 16 } } };
  const link = encodeLink({ ...remembered.first, task: "photos" }, remembered);
  assert.equal(link, "tab=photos&model=vit-s16", "the model that one browser remembers is said");
  assert.equal(
    decodeLink("tab=photos", remembered).state.photos.preset,
    "photos-tiny",
    "and none that it does not say",
  );
});

test("whoever opens a link to somebody's own picture reads that it is not in it", () => {
  for (const [task, picture] of [
    ["photos", { upload: "/tmp/secret/cat.jpg", name: "cat.jpg" }],
    ["digits", { strokes: Array.from({ length: 400 }, (_, i) => rounded(stroke(20, i))) }],
  ]) {
    const state = { ...page.first, task, [task]: { ...page.first[task], picture } };
    const link = encodeLink(state, page);
    assert.match(link, /picture=own/);
    assert.match(decodeLink(link, page).state[task].picture.refused, /not in it/);
  }
});

test("the link of a report brings a small copy of its picture; what is none is as if it were not there", async () => {
  const read = (text) => decodeLink(`tab=photos&class=3&image=${text}`, page).state;
  const { photos, view } = read(btoa("a picture >>>?").replaceAll("+", "%2B"));
  assert.equal(await photos.picture.file.text(), "a picture >>>?");
  assert.equal(view.label, 3);
  for (const wrong of ["", "a", "%00", "<img>"]) assert.deepEqual(read(wrong).photos, page.start.photos);
});

test("a link holds no upload", () => {
  const state = { ...page.first, task: "photos" };
  state.photos = { ...state.photos, picture: { upload: "/tmp/secret/cat.jpg", name: "cat.jpg" } };
  assert.equal(leftOut(state), "photo");
  assert.doesNotMatch(encodeLink(state, page), /secret|cat/);
});

test("silent heads are in a link, each once, and what makes no sense is left out", () => {
  const state = {
    ...page.first,
    view: {
      ...page.first.view,
      silent: [
        [1, 0],
        [3, 11],
      ],
    },
  };
  assert.match(encodeLink(state, page), /(^|&)silent=2\.1,4\.12(&|$)/);
  assert.deepEqual(decodeLink(encodeLink(state, page), page).state, state);
  const read = (text) => decodeLink(`tab=digits&silent=${text}`, page).state.view.silent;
  assert.deepEqual(read("2.1,4.12,2.1"), state.view.silent);
  const many = Array.from({ length: 10_000 }, (_, i) => `${i + 1}.1`).join();
  for (const wrong of ["", "2", "02.1", "0.1", "2.0", "-1.1", "2.1,", "2.1.1", "2;1", "2.1e3", "1.99999", many]) {
    assert.equal(read(wrong), null, wrong.slice(0, 20));
  }
  const pageState = createPageState();
  pageState.open(state);
  pageState.changeTab("digits", { picture: { digit: 3 } });
  assert.equal(pageState.get().view.silent, null, "they belong to their picture");
});

test("dropped patches are in a link, and belong to their picture", () => {
  const state = { ...page.first, view: { ...page.first.view, dropped: [0, 1, 2, 6, 8, 9] } };
  assert.match(encodeLink(state, page), /(^|&)removed=1-3,7,9-10(&|$)/);
  assert.deepEqual(decodeLink(encodeLink(state, page), page).state, state);
  for (const wrong of [
    "",
    "x",
    "0",
    "3-",
    "-3",
    "1-2-3",
    "1-99999",
    "5-4",
    "1;2",
    `1${",1".repeat(600)}x`.slice(0, 9),
  ]) {
    const { view } = decodeLink(`tab=digits&removed=${wrong}`, page).state;
    assert.ok(view.dropped === null || (wrong.startsWith("1,1") && view.dropped.length === 1), wrong);
  }
  const pageState = createPageState();
  for (const change of [
    () => pageState.chooseTask("photos"),
    () => pageState.changeTab("digits", { patchSize: 7 }),
    () => pageState.chooseTask("digits", { picture: { digit: 3 } }),
  ]) {
    pageState.restore(state);
    change();
    assert.equal(pageState.get().view.dropped, null);
  }
});

test("a second picture of one's own is in no link, and an unfinished number of a network neither", () => {
  const features = { ...page.first.view.features, second: { own: "own-3" } };
  const network = { start: "ViT-Tiny", fields: { depth: Number.NaN, num_heads: 2 } };
  const state = { ...page.first, view: { ...page.first.view, features, network } };
  assert.equal(leftOut(state), "second");
  const { view } = decodeLink(encodeLink(state, page), page).state;
  assert.equal(view.features.second, null);
  assert.deepEqual(view.network, { start: "ViT-Tiny", fields: { num_heads: 2 } });
});

test("of a view, what makes no sense is as at first, and the rest counts", () => {
  const sent = [
    "features=mean&features_block=0&segments=13&background=1&features_opacity=101&features_patch=3:3&second=../x&opacity=-1",
    "step=0&step_patch=x&step_block=1e9&step_head=0&step_filter=-1&step_token=1&columns=,:,a:b:c,a:1:&network=<b>,depth:3",
    "digit=test-1000&training=3,0,5000,9e9&network=",
    "digit=test-&training=0,0,5000,0.1",
  ];
  assert.deepEqual(decodeLink(`tab=digits&${sent.join("&")}`, page).state, page.first);
  const column = "digits-small:4:rollout:3";
  const some = `columns=${Array(20).fill(column).join()}&network=ViT-Tiny,depth:x,pool:max,__proto__:3,depth:2,class_token:1`;
  const { compare, network } = decodeLink(`tab=digits&${some}`, page).state.view;
  assert.deepEqual(
    compare,
    Array(4).fill({ preset: "digits-small", patchSize: 4, method: "rollout", label: 3, without: false }),
  );
  assert.deepEqual(network, { start: "ViT-Tiny", fields: { depth: 2 } });
});

test("how a network was trained is in the link to it, and in no other", () => {
  const name = `yours-${"a".repeat(22)}`;
  const training = { steps: 366, seed: 7, num_digits: 1000, learning_rate: 0.0005, shuffle_labels: true };
  const linkTo = (preset) =>
    encodeLink(
      { ...page.first, digits: { ...page.first.digits, preset }, view: { ...page.first.view, training } },
      page,
    );
  const { state, model } = decodeLink(linkTo(name), page);
  assert.deepEqual([model.name, state.view.training], [name, training]);
  assert.doesNotMatch(linkTo("digits-tiny"), /training/);
});

test("a model that must be downloaded is named beside the state", () => {
  for (const name of ["vit-s16", "org/model", "org/model@v1.0"]) {
    const found = decodeLink(`tab=photos&model=${name}&patch_size=16`, page);
    assert.deepEqual(found.model, { name, patchSize: 16 });
    assert.equal(found.state.photos.preset, "photos-tiny");
  }
  for (const name of ["/etc", "../a", "a/b/c", "javascript:alert(1)", "digits-small", "__proto__"]) {
    assert.equal(decodeLink(`tab=photos&model=${encodeURIComponent(name)}`, page).model, null, name);
  }
  assert.equal(decodeLink("tab=photos&model=org/model", { ...page, customModels: false }).model, null);
});

test("a section alone is a link to the drawing tab", () => {
  const { state } = decodeLink("section=steps", page);
  assert.deepEqual(state, { ...page.first, task: "digits", view: { ...page.first.view, section: "steps" } });
  assert.equal(decodeLink("tab=x&section=steps", page), null);
});

test("nonsense in a link is as if it were not there", () => {
  for (const link of ["", "tab=x", "%E0%A4%A", "tab=digits&".repeat(3000)]) {
    assert.ok([null, "digits"].includes(decodeLink(link, page)?.state.task ?? null));
  }
  const sent =
    "patch_size=1e9&fit=wide&photo=../x&section=A B&method=<b>&block=0&head=-1&patch=x&class=1.5&direction=up";
  const { state } = decodeLink(`tab=photos&${sent}`, page);
  assert.deepEqual(state, { ...page.first, task: "photos" });
});
