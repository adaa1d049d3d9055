// Cameras of this page, with one that takes its time.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createCamera, createWebcam, frameScale } from "../../vit_demo/web/frontend/shared/camera.js";

/** A camera that opens when the test says so. */
function createDevice() {
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
  const [camera, video] = [createDevice(), createVideo()];
  const webcam = createWebcam(video);
  const started = webcam.start();
  webcam.stop();
  const track = camera.open();
  assert.equal(await started, false);
  assert.ok(!track.isOn && video.hidden && video.srcObject === null);
});

test("the camera is on from start to stop", async () => {
  const [camera, video] = [createDevice(), createVideo()];
  const webcam = createWebcam(video);
  const started = webcam.start();
  const track = camera.open();
  assert.equal(await started, true);
  assert.ok(track.isOn && !video.hidden);
  webcam.stop();
  assert.ok(!track.isOn && video.hidden);
});

test("a camera that is refused after it was closed is no failure", async () => {
  const [camera, video] = [createDevice(), createVideo()];
  const webcam = createWebcam(video);
  const first = webcam.start();
  webcam.stop();
  camera.refuse();
  assert.equal(await first, false);
  const second = webcam.start();
  camera.refuse();
  await assert.rejects(second, /denied/);
});

/** The page's camera and what it told of itself, as [isOn, isHeld]. */
function createPage() {
  const [device, video] = [createDevice(), createVideo()];
  const camera = createCamera();
  const told = [];
  camera.open(video);
  camera.subscribe({ isConnected: true }, () => told.push([camera.isOn(), camera.isHeld()]));
  return { device, video, camera, told };
}

test("the page's camera tells when it starts and ends, each once", async () => {
  const { device, camera, told } = createPage();
  camera.stop(); // which is off
  const started = camera.start();
  const track = device.open();
  await started;
  camera.stop();
  camera.stop();
  assert.deepEqual(told, [
    [true, false],
    [false, false],
  ]);
  assert.ok(!track.isOn);
});

test("a camera that ends by itself is off", async () => {
  const { device, video, camera } = createPage();
  const started = camera.start();
  const track = device.open();
  await started;
  track.onended();
  assert.ok(!camera.isOn() && !track.isOn && video.srcObject === null);
});

test("a camera that is refused is off, and whoever started it hears of it", async () => {
  const { device, camera, told } = createPage();
  const started = camera.start();
  device.refuse();
  await assert.rejects(started, /denied/);
  assert.ok(!camera.isOn() && told.length === 0);
});

test("what is held is the frame that was seen last, to the byte, and of an earlier film nothing", async () => {
  const { device, camera, told } = createPage();
  const urlOf = (text) => `data:image/jpeg;base64,${Buffer.from(text).toString("base64")}`;
  for (const text of ["first film", "second film"]) {
    const started = camera.start();
    device.open();
    await started;
    for (const part of ["earlier", text]) camera.show(urlOf(part));
    const file = await camera.hold();
    assert.equal(await file.text(), text);
    assert.equal(file.type, "image/jpeg");
    assert.deepEqual(told.at(-1), [false, true]);
  }
  const started = camera.start();
  device.open();
  await started;
  await assert.rejects(camera.hold()); // it has seen nothing yet, and asks the video, of which there is none here
});

test("a frame is small, whatever the camera", () => {
  for (const sides of [
    [640, 480],
    [1920, 1080],
    [1080, 1920],
    [4000, 400],
    [256, 256],
    [160, 120],
  ]) {
    const scale = frameScale(...sides);
    const [shorter, longer] = sides.map((side) => Math.round(scale * side)).sort((a, b) => a - b);
    assert.ok(scale <= 1 && shorter <= 256 && longer <= 640, `${sides} became ${shorter} x ${longer}`);
    assert.ok(scale === 1 || shorter === 256 || longer === 640, "and no smaller than it must be");
  }
});
