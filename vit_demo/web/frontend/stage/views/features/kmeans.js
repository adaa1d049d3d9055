// k-means in the browser: Lloyd's algorithm, from the points that the server chose; as features/kmeans.py.

const ITERATIONS = 100;

/** The segment of each of the points [number of points, width]; segment i grows from the point `seeds[i]`. */
export function segmentsOf(points, width, seeds) {
  const count = points.length / width;
  const centres = new Float64Array(seeds.length * width);
  seeds.forEach((seed, segment) => {
    centres.set(points.subarray(seed * width, (seed + 1) * width), segment * width);
  });
  const segments = new Uint8Array(count).fill(255);
  for (let i = 0; i < ITERATIONS && assign(points, width, centres, segments); i++) {
    moveCentres(points, width, centres, segments);
  }
  return segments;
}

/** Gives each point to the nearest centre; returns whether any changed. */
function assign(points, width, centres, segments) {
  let changed = false;
  for (let point = 0; point < segments.length; point++) {
    let nearest = 0;
    let least = Infinity;
    for (let start = 0; start < centres.length; start += width) {
      let distance = 0;
      for (let i = 0, at = point * width; i < width && distance < least; i++, at++) {
        const difference = points[at] - centres[start + i];
        distance += difference * difference;
      }
      if (distance < least) {
        least = distance;
        nearest = start / width;
      }
    }
    changed ||= segments[point] !== nearest;
    segments[point] = nearest;
  }
  return changed;
}

/** Moves each centre to the mean of its points; one without points stays. */
function moveCentres(points, width, centres, segments) {
  const sums = new Float64Array(centres.length);
  const counts = new Uint32Array(centres.length / width);
  segments.forEach((segment, point) => {
    counts[segment]++;
    for (let i = 0; i < width; i++) sums[segment * width + i] += points[point * width + i];
  });
  for (let i = 0; i < sums.length; i++) {
    const members = counts[Math.floor(i / width)];
    if (members) centres[i] = sums[i] / members;
  }
}
