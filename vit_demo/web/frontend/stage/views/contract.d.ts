// What a view exports, what it is given, and what it may give back. stage/main.js makes the views and calls them.

/** A `view.js`. */
export interface ViewModule {
  name: string;
  /** One element, put where `stage.html` has `data-place="NAME"`, else at the end; a view without one draws on the picture. */
  html?: string;
  /** The sections that show it, those of `sections.js`; all of Explore by default. */
  sections?: string[];
  create: Create;
}

/** Makes a view in its element, or in the stage's if it has none of its own. */
export type Create = (element: any, context: Context) => View;

export interface Context {
  /** Asks the server about a result, see `shared/requests.js`. */
  request: any;
  /** By name, see `methods.js`. */
  methods: Record<string, any>;
  /** Changes some of the choices. */
  change: (part: Record<string, any>) => void;
  /** Shows what speaks for a class. */
  pickClass: (index: number) => void;
  /** Shows the attention of a block, of one head or of their mean, -1. */
  pickBlock: (block: number, head: number) => void;
  /** Draws the next frame. */
  redraw: () => void;
  /** Brings back what is left out of the picture and of the network. */
  restore: () => void;
  /** What is left out, see `dropping.js`. */
  dropping: any;
  /** What was measured of this result, see `curves.js`. */
  curves: any;
  /** Fetches the modules of a file that a first visit does not need, by their paths; `LATER` in modules.py lists them. */
  load: (file: string) => Promise<Record<string, any>>;
  /** Uploads a photo; resolves to its path on the server. */
  upload: any;
  /** Of each step of the tour the lines of the package, null where there is no server. */
  stepCode: any;
  startingPoints: any;
  examples: { name: string; title: string }[];
}

/** All may be left out. */
export interface View {
  /** Called with each new result, and with that of the whole picture; with null where there is none. */
  show?: (result: any, whole?: any) => void;
  /** Called at each frame while a section of the view is open: `render.js` makes the drawing, `frame.js` its frame. */
  draw?: (drawing: any) => void;
  /** Whether it is drawn while a stroke goes on, too. */
  isLive?: boolean;
  /** Called at each frame without a result. */
  drawEmpty?: (given: { choices: any }) => void;
  /** Asks again for what has failed. */
  retry?: () => void;
  /** What is painted on the picture in place of a map; null for nothing. */
  picture?: (result: any, choices: any) => any;
  /** What `picture` can show, for the drawer: [name, title, use]. */
  modes?: string[][];
  /** Tests the map that is shown, and brings the verdict into sight. */
  trust?: () => void;
  /** Shows all that can be saved; Escape leads back to the link. */
  take?: (link: HTMLElement) => void;
  /** Sends the picture to others; resolves to what became of it. */
  send?: () => Promise<string>;
}
