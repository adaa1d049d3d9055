// Base64 from Python to typed arrays. Python and every browser's platform are little-endian.

function decodeBytes(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

const decodeFloat32 = (text) => new Float32Array(decodeBytes(text).buffer);

/** All 65,536 half-precision numbers, so that decoding half a million of them is a look-up each. */
const halves = (() => {
  let table = null;
  return () => (table ??= Float32Array.from({ length: 1 << 16 }, (_, bits) => halfToNumber(bits)));
})();

function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * 2 ** -24 * fraction;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}

function decodeFloat16(text) {
  const table = halves();
  return Float32Array.from(new Uint16Array(decodeBytes(text).buffer), (bits) => table[bits]);
}

/** The attention of one block: q (already scaled) and k of every head and token, and each row's log-sum-exp. */
const decodeTrace = ({ q, k, lse }) => ({ q: decodeFloat16(q), k: decodeFloat16(k), lse: decodeFloat32(lse) });
