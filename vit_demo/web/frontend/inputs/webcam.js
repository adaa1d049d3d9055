// One photo from a webcam.

import { createRequestIds } from "../stage/requests.js";

const endTracks = (stream) => {
  for (const track of stream?.getTracks() ?? []) track.stop();
};

/**
 * `start()` shows the camera's picture in the video, and resolves to whether it was not stopped meanwhile; `shoot()`
 * resolves to a file; `stop()` switches the camera off.
 */
export function createWebcam(video) {
  const starts = createRequestIds();
  let stream = null;

  async function start() {
    stop();
    const isCurrent = starts.start();
    try {
      const asked = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false });
      if (!isCurrent()) {
        endTracks(asked);
        return false;
      }
      stream = asked;
      video.srcObject = stream;
      video.hidden = false;
      await video.play();
    } catch (error) {
      if (isCurrent()) throw error; // otherwise nobody waits for it any more
    }
    return isCurrent();
  }

  function stop() {
    starts.start();
    endTracks(stream);
    stream = video.srcObject = null;
    video.hidden = true;
  }

  async function shoot() {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
    canvas.getContext("2d").drawImage(video, 0, 0);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.92));
    stop();
    return new File([blob], "webcam.jpg", { type: "image/jpeg" });
  }

  return { start, shoot, stop };
}
