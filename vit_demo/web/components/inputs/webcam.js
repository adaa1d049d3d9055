// One photo from a webcam.

/** `start()` shows the camera's picture in the video; `shoot()` resolves to a file; `stop()` switches the camera off. */
export function createWebcam(video) {
  let stream = null;

  async function start() {
    const asked = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false });
    stop();
    stream = asked;
    video.srcObject = stream;
    video.hidden = false;
    await video.play();
  }

  function stop() {
    for (const track of stream?.getTracks() ?? []) track.stop();
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
