// @ts-check
// A grey drawing as a PNG of a sixth of the bytes that a canvas writes, with the same pixels: the server makes the same of it.

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const HEAD = "data:image/png;base64,";

/**
 * The data URL of the pixels of a canvas, RGBA of which the first channel counts; null where the browser cannot compress.
 *
 * @param {{data: Uint8ClampedArray | Uint8Array, width: number, height: number}} pixels
 */
export async function greyPng({ data, width, height }) {
  if (typeof CompressionStream === "undefined") return null;
  const rows = new Uint8Array(height * (width + 1)); // each begins with its filter, 0 for none
  for (let y = 0, at = 0, from = 0; y < height; y++) {
    at++;
    for (let x = 0; x < width; x++, from += 4) rows[at++] = data[from];
  }
  const { readable, writable } = new CompressionStream("deflate");
  const writer = writable.getWriter(); // a Blob would wait for the browser's other processes
  writer.write(rows);
  writer.close();
  const packed = new Uint8Array(await new Response(readable).arrayBuffer());
  const header = [...bytesOf(width), ...bytesOf(height), 8, 0, 0, 0, 0]; // 8 bits, grey, not interlaced
  const file = [...SIGNATURE, ...chunk("IHDR", header), ...chunk("IDAT", packed), ...chunk("IEND", [])];
  return HEAD + btoa(file.map((byte) => String.fromCharCode(byte)).join(""));
}

const bytesOf = (number) => [24, 16, 8, 0].map((shift) => (number >>> shift) & 255);

/** A part of a PNG: its length, its name and its bytes, and the checksum (CRC-32) of both. */
function chunk(/** @type {string} */ name, /** @type {Iterable<number>} */ bytes) {
  const body = [...name].map((letter) => letter.charCodeAt(0)).concat([...bytes]);
  return [...bytesOf(body.length - 4), ...body, ...bytesOf(checksum(body))];
}

function checksum(/** @type {number[]} */ bytes) {
  let rest = -1;
  for (const byte of bytes) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  }
  return ~rest;
}
