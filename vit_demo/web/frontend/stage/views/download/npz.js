// @ts-check
// NumPy's file formats: arrays as .npy (version 1.0), and several of them as .npz, a ZIP archive without compression.

const ENCODER = new TextEncoder();
const ALIGNMENT = 64; // of the data in a .npy file
const DOS_DATE = 0x0021; // 1 January 1980: equal arrays give equal files

/** A Float32Array, or a list of texts, of a shape as the bytes of a .npy file. */
function npy(values, shape) {
  const tuple = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const texts = values instanceof Float32Array ? null : values.map((text) => [...text]);
  const width = texts ? Math.max(1, ...texts.map((text) => text.length)) : 1; // in units of 4 bytes
  const header = `{'descr': '${texts ? `<U${width}` : "<f4"}', 'fortran_order': False, 'shape': (${tuple}), }`;
  const length = Math.ceil((10 + header.length + 1) / ALIGNMENT) * ALIGNMENT - 10;
  const bytes = new Uint8Array(10 + length + 4 * width * values.length);
  bytes.set([0x93, ...ENCODER.encode("NUMPY"), 1, 0, length & 255, length >> 8]);
  bytes.set(ENCODER.encode(`${header.padEnd(length - 1)}\n`), 10);
  const view = new DataView(bytes.buffer, 10 + length);
  for (const [i, value] of values.entries()) {
    if (!texts) view.setFloat32(4 * i, value, true);
    else
      for (const [j, character] of texts[i].entries())
        view.setUint32(4 * (i * width + j), character.codePointAt(0), true);
  }
  return bytes;
}

/** Arrays, {name: {values, shape}}, as a .npz file, a Blob. */
export function npz(arrays) {
  const files = Object.entries(arrays).map(([name, { values, shape }]) => ({
    name: ENCODER.encode(`${name}.npy`),
    content: npy(values, shape),
  }));
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const { name, content } of files) {
    const common = [20, 0, 0, 0, DOS_DATE].flatMap((each) => bytesOf(each, 2));
    const sizes = [crc32(content), content.length, content.length].flatMap((each) => bytesOf(each, 4));
    const local = [...bytesOf(0x04034b50, 4), ...common, ...sizes, ...bytesOf(name.length, 2), 0, 0];
    directory.push([...bytesOf(0x02014b50, 4), 20, 0, ...common, ...sizes, ...bytesOf(name.length, 2)]);
    directory.push([...Array(12).fill(0), ...bytesOf(offset, 4), ...name]);
    parts.push(Uint8Array.from(local), name, content);
    offset += local.length + name.length + content.length;
  }
  const central = Uint8Array.from(directory.flat());
  const counts = [files.length, files.length].flatMap((count) => bytesOf(count, 2));
  const sizes = [central.length, offset].flatMap((each) => bytesOf(each, 4));
  const end = [...bytesOf(0x06054b50, 4), ...bytesOf(0, 4), ...counts, ...sizes, ...bytesOf(0, 2)];
  return new Blob([...parts, central, Uint8Array.from(end)]);
}

const bytesOf = (number, count) => Array.from({ length: count }, (_, i) => Math.floor(number / 256 ** i) % 256);

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

function crc32(bytes) {
  let c = 0xffffffff;
  for (const byte of bytes) c = TABLE[(c ^ byte) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}
