// @ts-check
// Cameras: one of a video element, and the page's, which the photo input starts and about whose frames the stage asks.

import { make, put } from "./dom.js";
import { english } from "./language.js";
import { createChannel } from "./pageState.js";
import { createRequestIds } from "./requests.js";

export const NO_CAMERA = english("The camera could not be used: allow it in the browser, or choose a photo.");

const [SHORTEST, LONGEST] = [256, 640]; // pixels that the sides of a frame have at most
const TYPE = "image/jpeg";

const endTracks = (stream) => {
  for (const track of stream?.getTracks() ?? []) track.stop();
};

const fileOf = (part) => new File([part], "camera.jpg", { type: TYPE });

/**
 * `start()` shows the camera's picture in the video, and resolves to whether it was not stopped meanwhile; `frame()`
 * resolves to a file; `stop()` switches the camera off; `onEnd()` is called if it ends by itself.
 */
export function createWebcam(video, onEnd = () => {}) {
  const startFilm = createRequestIds();
  let stream = /** @type {any} */ (null);

  async function start() {
    stop();
    const isCurrent = startFilm();
    try {
      const asked = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false });
      if (!isCurrent()) {
        endTracks(asked);
        return false;
      }
      stream = asked;
      for (const track of stream.getTracks()) track.onended = onEnd;
      video.srcObject = stream;
      video.hidden = false;
      await video.play();
    } catch (error) {
      if (isCurrent()) throw error; // otherwise nobody waits for it any more
    }
    return isCurrent();
  }

  function stop() {
    startFilm();
    endTracks(stream);
    stream = video.srcObject = null;
    video.hidden = true;
  }

  async function frame() {
    const blob = await new Promise((resolve) => canvasOf(video).toBlob(resolve, TYPE, 0.92));
    return fileOf(blob);
  }

  return { start, frame, stop };
}

/** What a video shows now. */
function canvasOf(video, scale = 1) {
  const [width, height] = [video.videoWidth, video.videoHeight].map((side) => Math.round(scale * side));
  const canvas = make("canvas", { width, height });
  canvas.getContext("2d").drawImage(video, 0, 0, width, height);
  return canvas;
}

/** The scale at which a picture is a frame. */
export function frameScale(/** @type {number} */ width, /** @type {number} */ height) {
  return Math.min(1, SHORTEST / Math.min(width, height), LONGEST / Math.max(width, height));
}

/** Hides the buttons in a host that do nothing now, of those with data-way, and keeps the focus among the others. */
export function showWays(host) {
  const [isOn, canStart] = [camera.isOn(), camera.canStart()];
  const shown = { choose: !isOn, live: !isOn && canStart, camera: !isOn && !canStart, hold: isOn, stop: isOn };
  for (const [name, isShown] of Object.entries(shown)) {
    const button = host.querySelector(`[data-way=${name}]`);
    if (button) put(button, { hidden: !isShown });
  }
  const { activeElement } = document;
  if (activeElement?.matches("[data-way][hidden]") && host.contains(activeElement)) {
    host.querySelector(`[data-way=${isOn ? "hold" : "choose"}]`).focus();
  }
}

/** The page's camera; `subscribe(element, callback)` tells when it starts and ends. */
export function createCamera() {
  const { publish, subscribe } = createChannel();
  let video = /** @type {any} */ (null);
  let webcam = /** @type {any} */ (null);
  let isOn = false;
  let isHeld = false; // whether it ended with a frame that is to be the picture
  let seen = /** @type {string | null} */ (null); // the frame that the page shows

  function end(holds) {
    webcam?.stop();
    if (!isOn) return;
    [isOn, isHeld] = [false, holds];
    publish();
  }

  return {
    subscribe,
    /** The video that the camera fills. */
    open(element) {
      video = element;
      webcam = createWebcam(video, () => end(false));
    },
    isOn: () => isOn,
    isHeld: () => isHeld,
    canStart: () => Boolean(webcam && navigator.mediaDevices?.getUserMedia),
    async start() {
      try {
        if (!(await webcam.start())) return;
        [isOn, isHeld, seen] = [true, false, null];
        publish();
      } catch (error) {
        end(false);
        throw error;
      }
    },
    stop: () => end(false),
    /** A small frame, {canvas, url}, or null before the first one. */
    frame() {
      if (!video.videoWidth) return null;
      const canvas = canvasOf(video, frameScale(video.videoWidth, video.videoHeight));
      return { canvas, url: canvas.toDataURL(TYPE, 0.85) };
    },
    /** A frame is what the page shows. */
    show(/** @type {string} */ url) {
      seen = url;
    },
    /** Ends with the frame that is shown, else the newest, as a file. */
    async hold() {
      const bytes = seen && Uint8Array.from(atob(seen.split(",")[1]), (character) => character.charCodeAt(0));
      const file = bytes ? fileOf(bytes) : await webcam.frame();
      end(true);
      return file;
    },
  };
}

/** The camera of this page; the inputs and the stage share it by importing it. */
export const camera = createCamera();
