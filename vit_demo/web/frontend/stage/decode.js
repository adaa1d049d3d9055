// Base64 from Python to typed arrays. Python and every browser's platform are little-endian.

export function decodeBytes(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export const decodeFloat32 = (text) => new Float32Array(decodeBytes(text).buffer);

export const decodeUint32 = (text) => new Uint32Array(decodeBytes(text).buffer);

export const decodeInt16 = (text) => new Int16Array(decodeBytes(text).buffer);

export const decodeUint16 = (text) => new Uint16Array(decodeBytes(text).buffer);

export function decodeFloat16(text) {
  float16Table ??= Float32Array.from({ length: 1 << 16 }, (_, bits) => float16ToNumber(bits));
  return Float32Array.from(decodeUint16(text), (bits) => float16Table[bits]);
}

/** All 65,536 half-precision numbers, so that decoding half a million of them is a look-up each. */
let float16Table = null;

function float16ToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * 2 ** -24 * fraction;
  if (exponent === 0x1f) return fraction ? Number.NaN : sign * Infinity;
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}

/** Maps [..., N] in levels, each a share of its own peak, and their peaks [...]: value = level / FULL_LEVEL * peak. */
export const decodeMaps = ({ levels, peaks }) => ({ levels: decodeUint16(levels), peaks: decodeFloat32(peaks) });

export const FULL_LEVEL = 65535;

/** The attention of one block: q (already scaled) and k of every head and token, and each row's log-sum-exp. */
export const decodeTrace = ({ q, k, logsumexp }) => ({
  q: decodeFloat16(q),
  k: decodeFloat16(k),
  logsumexp: decodeFloat32(logsumexp),
});
