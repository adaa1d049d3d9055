// The webcam, with a camera that takes its time.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createWebcam } from "../../vit_demo/web/frontend/inputs/photoInput.js";

/** A camera that opens when the test says so. */
function createCamera() {
  const waiting = [];
  const getUserMedia = () => new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  const navigator = { mediaDevices: { getUserMedia } };
  Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
  const open = () => {
    const track = {
      isOn: true,
      stop() {
        track.isOn = false;
      },
    };
    waiting.shift().resolve({ getTracks: () => [track] });
    return track;
  };
  return { open, refuse: () => waiting.shift().reject(new Error("denied")) };
}

const createVideo = () => ({ hidden: true, srcObject: null, play: async () => {} });

test("a camera that is allowed after it was closed is switched off at once", async () => {
  const [camera, video] = [createCamera(), createVideo()];
  const webcam = createWebcam(video);
  const started = webcam.start();
  webcam.stop();
  const track = camera.open();
  assert.equal(await started, false);
  assert.ok(!track.isOn && video.hidden && video.srcObject === null);
});

test("the camera is on from start to stop", async () => {
  const [camera, video] = [createCamera(), createVideo()];
  const webcam = createWebcam(video);
  const started = webcam.start();
  const track = camera.open();
  assert.equal(await started, true);
  assert.ok(track.isOn && !video.hidden);
  webcam.stop();
  assert.ok(!track.isOn && video.hidden);
});

test("a camera that is refused after it was closed is no failure", async () => {
  const [camera, video] = [createCamera(), createVideo()];
  const webcam = createWebcam(video);
  const first = webcam.start();
  webcam.stop();
  camera.refuse();
  assert.equal(await first, false);
  const second = webcam.start();
  camera.refuse();
  await assert.rejects(second, /denied/);
});
