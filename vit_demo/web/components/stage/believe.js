// "Can this picture be believed?": puts the shown map to the test when asked to, and says what came of it.

const CLAIM = "Remove its brightest patches, or begin with them alone, and watch the answer; then do so in random order.";
const STANDS_IN = "In place of a removed patch stands the colour that normalization maps to 0: nearly black for " +
  "digits, a plain grey for most models of photos.";

function createBelieve() {
  const card = find(".believe");
  const button = find(".believe button");
  const bar = find(".believe .working");
  const tests = new WeakMap(); // result -> Map from question to what was found
  let now = null; // {result, question, subject, name}
  let drawn = null; // the test whose charts are on the page

  const nameOf = ({ question, target }) => JSON.stringify([question, target]);
  const testsOf = (result) => tests.get(result) ?? tests.set(result, new Map()).get(result);

  async function run() {
    const mine = now;
    const test = { working: true, share: null, subject: mine.subject, name: mine.name };
    testsOf(mine.result).set(nameOf(mine), test);
    sync(mine);
    const wanted = () => now?.result === mine.result && testsOf(mine.result).get(nameOf(now)) === test;
    const ask = (about) =>
      askServer({ label: mine.target, ...mine.question, about, source: mine.result.source }, wanted, (share) => {
        test.share = share;
        sync(now);
      });
    let said = await ask("test");
    if (said?.answer) {
      test.found = said.answer;
      if (!METHODS[mine.question.method].slow && isPlain(mine.result, mine.question)) {
        sync(now);
        test.share = null;
        said = await ask("randomization");
        test.alike = said?.answer?.correlations;
      }
    }
    test.working = false;
    test.error = said?.error ?? "";
    if (!test.found && !test.error) testsOf(mine.result).delete(nameOf(mine)); // it was given up
    if (now) sync(now);
  }

  /** Shows what is known of the map; `state` as `now` above, or null where there is nothing to test. */
  function sync(state) {
    now = state;
    card.hidden = Boolean(state && !state.result.top.length);
    const test = state && testsOf(state.result).get(nameOf(state));
    const done = test?.found && !test.error;
    button.disabled = !state || Boolean(test?.working || done);
    button.textContent = test?.working ? "Testing …" : done ? "Tested" : "Test this map";
    showWorking(bar, Boolean(test?.working), test?.share);
    if (drawn && drawn.result !== state?.result) draw(null);
    if (test?.found && (drawn?.test !== test || drawn.alike !== test.alike)) {
      draw({ result: state.result, test, alike: test.alike });
    }
    card.classList.toggle("stale", Boolean(drawn && drawn.test !== test));
    setText(find(".believe .claim"), test?.error || CLAIM);
  }

  function draw(next) {
    drawn = next;
    find(".believe .found").hidden = !next;
    if (!next) return;
    const { found, alike, subject, name } = next.test;
    const [verdict, words] = verdictWords(name, found);
    setText(find(".believe .subject"), subject);
    setText(find(".believe .verdict-words"), verdict);
    setText(find(".believe .numbers"), `${words} ${STANDS_IN}`);
    const legend = (side) => [`this map ${area(side.area)}`, `random ${area(side.random_area)}`];
    const curves = (title, side, ends) => lineChart({
      title, places: found.fractions, curve: side.curve, randoms: side.random, ends, legend: legend(side),
    });
    const charts = [
      curves(`${name} while patches go`, found.deletion, ["all patches", "none left"]),
      curves(`${name} while patches return`, found.insertion, ["no patch", "all back"]),
    ];
    if (alike) charts.push(forgettingChart(alike));
    find(".believe .charts").replaceChildren(...charts);
    setText(find(".believe .forgetting"), alike ? forgettingWords(alike) : "");
  }

  function forgettingChart(alike) {
    const places = alike.map((_, i) => i / (alike.length - 1));
    const ends = ["trained", "all weights shuffled"];
    return lineChart({ title: "Likeness while the model forgets", places, curve: alike, randoms: [], ends, legend: ["to this map (rank correlation)"] });
  }

  button.addEventListener("click", run);
  return sync;
}

/** A thin bar: how far work is, or that it goes on. */
function showWorking(bar, on, share) {
  bar.classList.toggle("on", on);
  bar.classList.toggle("unknown", share === null || share === undefined);
  bar.firstElementChild.style.width = `${100 * (share ?? 1)}%`;
}
