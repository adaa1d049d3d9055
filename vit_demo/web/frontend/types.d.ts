// Written by `python -m scripts.typescript` from the Python types; do not edit.

export interface SourcePayload {
  digit?: string;
  drawing?: string;
  example?: string;
  upload?: string;
  preset: string;
  patch_size: number;
  fit: string;
  dropped: number[];
  words?: string[];
  silent?: number[][];
}

export interface MapsPayload {
  levels: string;
  peaks: string;
}

export interface TracePayload {
  q: string;
  k: string;
  logsumexp: string;
}

export interface PredictionsPayload {
  indices: string;
  probabilities: string;
  scores: string;
  labels: string[];
}

export interface PhotoPayload {
  image: string;
  box: number[];
  fit: string;
}

export interface ResultPayload {
  run: string;
  source: SourcePayload;
  image: string;
  size: number[];
  pixelated: boolean;
  photo: PhotoPayload | null;
  box: number[] | null;
  grid: number[];
  num_prefix_tokens: number;
  class_token: boolean;
  pool: string;
  num_blocks: number;
  num_heads: number;
  trace_bytes: number;
  dropped: number[];
  silent: number[][];
  predictions: PredictionsPayload;
  early: string | null;
  confident: boolean;
  note: string;
  attention_maps: MapsPayload;
  rollout: MapsPayload;
  trace?: Record<string, TracePayload>;
  operations: number;
  milliseconds: number;
  device: string;
}

export interface EmptyPayload {
  empty: boolean;
  message: string;
}

export interface MethodEntry {
  name: string;
  title: string;
  class_specific: boolean;
  cost: string;
  unit: string;
  signed: boolean;
  use: string;
  recommended: string;
  description: string;
  floor: Record<string, any>;
  options: Record<string, any>[];
}

export interface MapRequest {
  method: string;
  block?: number;
  head?: number | null;
  query?: number | null;
  direction?: "from" | "to";
  label?: number | null;
  against?: number | null;
}

export interface CurveRequest {
  baseline?: "mean" | "blur" | "black";
  order?: number;
  label?: number | null;
  against?: number | null;
}

export interface SetRequest {
  wanted: string;
  label?: number | null;
  without?: number[];
}

export interface StepRequest {
  query?: number | null;
  block?: number;
  head?: number;
}

export interface Constants {
  scale: number[][];
  signedScale: number[][];
  whiteOfPaper: number;
  blackOfInk: number;
  numOrders: number;
  numClasses: number;
  enoughShare: number;
  improbable: number;
  maxUploadBytes: number;
  maxTaughtClasses: number;
  maxTaughtPictures: number;
  maxLabel: number;
  maxPreviewCharacters: number;
}

export type Kind = "result" | "map" | "block" | "attention_maps" | "logit_lens" | "film" | "tokens" | "input" | "steps" | "steps_patch" | "steps_block" | "faithfulness" | "random_order" | "randomization" | "smallest_set" | "head_effects" | "fewest_heads" | "contributions" | "method_docs" | "models" | "model" | "network" | "train" | "teach";

/** What `server.request` gets; which fields belong to which kind is in web/requests/kinds.py. */
export type Request = { kind: Kind; source?: SourcePayload } & Record<string, unknown>;

/** One of: the result, one sentence, or the progress of its job; see web/requests/poll.py. */
export interface Reply {
  result?: any;
  error?: string;
  retry?: boolean;
  lost?: boolean;
  done?: number;
  total?: number;
  tried?: number[]; // patches that a search has just tried to do without
  fewest?: number[]; // the fewest that it has found so far
}

export interface Server {
  request(fields: Request): Promise<Reply>;
  upload(file: Blob): Promise<{ path?: string; error?: string }>;
  /** The modules of the page, with those of a file of `LATER` in web/frontend/modules.py. */
  load?(name: string): Promise<any>;
}
