// Starts the stage in a notebook: unpacks the bundle and answers the stage's requests from the replies in it.

(async () => {
  const NEEDS_SERVER = "This needs the running page: python -m vit_demo serve.";

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }

  /** The key of a request: its fields in alphabetical order, without the source, as in show.py. */
  function keyOf({ source, ...fields }) {
    const names = Object.keys(fields).filter((name) => fields[name] !== null);
    return JSON.stringify(names.sort().map((name) => [name, fields[name]]));
  }

  const element = document.getElementById("stage");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const setTheme = () => document.documentElement.classList.toggle("dark", dark.matches);
  dark.addEventListener("change", setTheme);
  setTheme();
  try {
    const { script, style, start, value, replies, constants } = await unpack(
      document.getElementById("bundle").textContent,
    );
    document.head.prepend(Object.assign(document.createElement("style"), { textContent: style }));
    const { modules } = await import(`data:text/javascript,${encodeURIComponent(script)}`);
    const request = async (fields) => replies[keyOf(fields)] ?? { error: NEEDS_SERVER };
    const { mount } = modules[start];
    await mount({ element, props: { value }, server: { request }, watch() {}, ...constants });
  } catch (error) {
    console.error(error);
    element.textContent = "This result could not be shown: use a current version of Chrome, Edge, Firefox or Safari.";
  }
})();
