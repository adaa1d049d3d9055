// Questions that take the server a while: the same question is asked until it is answered.

/**
 * Asks until there is an answer and gives {answer} or {error: one sentence}, or null as soon as `wanted()` is false.
 * `working(share)` hears how far it is, from 0 to 1, or null where nobody knows.
 */
async function askServer(question, wanted, working = () => {}) {
  for (;;) {
    if (!wanted()) return null;
    const said = await server.ask(question).catch(() => null);
    if (!wanted()) return null;
    // Gradio answers undefined when the request failed.
    if (!said) return { error: "The server did not answer: try again." };
    if (said.error || said.answer) return said;
    working(said.total ? said.done / said.total : null);
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
