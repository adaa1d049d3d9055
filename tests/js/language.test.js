// The words of the page in other languages: the catalogues as they are, and a small one of the test's own.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, test } from "node:test";

import {
  boldParts,
  currentLanguage,
  formatDecimals,
  formatInteger,
  languageChange,
  marked,
  plain,
  translate,
  useCatalogue,
} from "../../vit_demo/web/frontend/shared/language.js";
import { formatNumber, formatProbability, percent } from "../../vit_demo/web/frontend/stage/format.js";

const PATCHES = "{count} patch|{count} patches";
const read = (name) =>
  JSON.parse(readFileSync(new URL(`../../vit_demo/web/languages/${name}.json`, import.meta.url), "utf8"));

afterEach(() => useCatalogue("en", {}));

test("English needs no catalogue", () => {
  assert.equal(translate("Class token"), "Class token");
  assert.equal(translate("block {block} of {blocks}", { block: 2, blocks: 6 }), "block 2 of 6");
  assert.deepEqual(
    [0, 1, 2].map((count) => translate(PATCHES, { count })),
    ["0 patches", "1 patch", "2 patches"],
  );
});

test("a text is looked up, filled, and English where it is missing", () => {
  useCatalogue("de", { "block {block} of {blocks}": "{blocks} Blöcke, davon {block}" });
  assert.equal(translate("block {block} of {blocks}", { block: 2, blocks: 6 }), "6 Blöcke, davon 2");
  assert.equal(translate("not in it"), "not in it");
  assert.equal(translate("constructor"), "constructor");
  assert.equal(translate("{label}", { label: "{block}" }), "{block}", "a value is not filled again");
});

test("the form follows the language's rule of plurals", () => {
  const forms = { one: "{count} один", few: "{count} два", many: "{count} пять", other: "{count} доли" };
  useCatalogue("ru", { [PATCHES]: forms });
  const found = [1, 2, 5, 11, 21, 22].map((count) => translate(PATCHES, { count }));
  assert.deepEqual(found, ["1 один", "2 два", "5 пять", "11 пять", "21 один", "22 два"]);
  useCatalogue("fr", { [PATCHES]: { one: "{count} patch", other: "{count} patchs" } });
  assert.equal(translate(PATCHES, { count: 0 }), "0 patch", "in French, none is singular");
  assert.equal(translate(PATCHES, { count: 2_000_000 }), "2000000 patchs", "a form that is missing is the general one");
});

test("sentences of the server are found by their templates, one by one", () => {
  useCatalogue("de", {
    "{0} parameters.": "{0} Parameter.",
    "Test accuracy {0}.": "Testgenauigkeit {0}.",
    "Trained (a+b).": "Trainiert (a+b).",
  });
  const values = ["1.2 M", "69.4\u00a0% (X 1), 1,642 of 2"].map(marked);
  const text = `${values[0]} parameters. Test accuracy ${values[1]}. Trained (a+b). More, in ${marked("English")}.`;
  const expected = "1,2 M Parameter. Testgenauigkeit 69,4\u00a0% (X 1), 1.642 of 2. Trainiert (a+b). More, in English.";
  assert.equal(translate(text), expected);
  assert.equal(
    translate(`${marked("org/vit-1.5")} parameters.`),
    "org/vit-1.5 Parameter.",
    "the number in a name is none",
  );
  useCatalogue("en", {});
  assert.equal(
    translate(`${marked("1.2 M")} parameters. ${marked("A")}.`),
    "1.2 M parameters. A.",
    "marks are not shown",
  );
});

test("a sentence of each language comes back from the server's English", () => {
  const [side, tokens, count, accuracy] = ["12", "145", "3.0 M", "69.4"].map(marked);
  const english =
    `${side} × ${side} patches + class token = *${tokens} tokens*. ${count} parameters. ` +
    `Right on ${accuracy}\u00a0% of MNIST’s test digits.`;
  for (const name of ["es", "zh", "de", "fr"]) {
    useCatalogue(name, read(name));
    const found = translate(english);
    assert.ok(found.includes("145") && found.includes("MNIST"), found);
    assert.ok(!/parameters|digits/.test(found), found);
    assert.ok(found.includes(name === "zh" ? "69.4" : "69,4"), found);
  }
});

test("numbers are written as in the language", () => {
  useCatalogue("de", read("de"));
  assert.equal(formatInteger(1_234_567), "1.234.567");
  assert.equal(formatDecimals(-0.5, 2), "−0,50");
  assert.equal(formatProbability(0.9734), "97,3\u00a0%");
  assert.equal(formatNumber(0.0001234), "0,00012");
  useCatalogue("zh", read("zh"));
  assert.equal(percent(97.34, 1), "97.3%");
});

test("whoever subscribes to the language is called", () => {
  const heard = [];
  languageChange.subscribe({ isConnected: true }, (language) => heard.push(language));
  useCatalogue("fr", {});
  assert.deepEqual([heard, currentLanguage()], [["fr"], "fr"]);
});

test("stars make words bold, in every language, and those within a name are shown", () => {
  const names = { "a*b": "a*b", "3*4*5": "3*4*5", "x*": "x*", "*": "*", "C* x": "C* x" };
  for (const [name, shown] of Object.entries(names)) {
    assert.equal(boldParts(name).join(""), shown, "alone");
    const said = boldParts(translate("Shown: *{label}*, {probability}", { label: name, probability: "5 %" }));
    assert.ok(said.join("").includes(shown), name);
  }
  assert.deepEqual(boldParts("*a*b*: 5 %"), ["", "a*b", ": 5 %"]);
  assert.equal(plain("the *token* of a*b"), "the token of a*b");
  for (const language of ["de", "es", "fr", "zh"]) {
    for (const text of Object.values(read(language)).flatMap((each) =>
      typeof each === "string" ? [each] : Object.values(each),
    )) {
      assert.deepEqual(boldParts(text), text.split("*"), `${language}: ${text}`);
    }
  }
});
