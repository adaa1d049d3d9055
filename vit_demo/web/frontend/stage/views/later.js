// @ts-check
// A view whose code is fetched when its section is first opened.

/**
 * Makes the view: `create(modules)` makes what happens in it from the modules of `file` (see modules.py), once one of `sections`
 * is open; `fail()` says that they could not be loaded.
 *
 * @param {{load: (file: string) => Promise<any>, file: string, sections: string[], create: (modules: any) => any, fail: () => void}} given
 */
export function createLater({ load, file, sections, create, fail }) {
  let view = /** @type {any} */ (null);
  let isWanted = false;
  let [shown, drawn] = [/** @type {any[]} */ ([]), /** @type {any} */ (null)];

  async function fetchView() {
    isWanted = true;
    const modules = await load(file).catch(() => null);
    if (!modules) return fail();
    view = create(modules);
    view.show?.(...shown);
    view.draw(drawn);
  }

  return {
    show(...given) {
      shown = given;
      view?.show?.(...given);
    },
    draw(given) {
      drawn = given;
      if (!isWanted && sections.includes(given.choices.section)) fetchView();
      view?.draw(given);
    },
  };
}
