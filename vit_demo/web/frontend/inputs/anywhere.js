// A photo dropped on or pasted into any part of the page.

/** Calls `take(file)`, for as long as the element is on the page; `veil` shows while a file is dragged over it. */
export function takeFromAnywhere(element, veil, take) {
  const stopped = new AbortController();
  const options = { signal: stopped.signal };
  let depth = 0; // of the elements that the dragged file has entered

  const listen = (name, callback) =>
    document.addEventListener(
      name,
      (event) => {
        if (element.isConnected) callback(event);
        else stopped.abort();
      },
      options,
    );
  const holdsFile = ({ dataTransfer }) => [...(dataTransfer?.types ?? [])].includes("Files");

  function enter(change) {
    depth = Math.max(0, depth + change);
    veil.hidden = !depth;
  }

  listen("dragenter", (event) => holdsFile(event) && enter(1));
  listen("dragleave", (event) => holdsFile(event) && enter(-1));
  listen("dragover", (event) => holdsFile(event) && event.preventDefault());
  listen("drop", (event) => {
    if (!holdsFile(event)) return;
    event.preventDefault();
    enter(Number.NEGATIVE_INFINITY);
    take(event.dataTransfer.files[0]);
  });
  listen("paste", (event) => {
    const file = [...(event.clipboardData?.files ?? [])].find(({ type }) => type.startsWith("image/"));
    if (!file) return;
    event.preventDefault();
    take(file);
  });
}
