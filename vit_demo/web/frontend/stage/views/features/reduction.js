// Principal components in the browser; the same rules as features/pca.py.

const SWEEPS = 30; // of Jacobi's method, which converges within ten
const PRECISION = 1e-9; // of an entry off the diagonal, as a share of the whole matrix

/**
 * The first `count` principal components of the points [number of points, width] whose `kept` is not 0 (all for null).
 *
 * Returns {scores: [points, count], shares: of the variance}; the largest absolute value of each component is positive.
 */
export function principalComponents(points, width, kept = null, count = 3) {
  const chosen = [];
  for (let point = 0; point < points.length / width; point++) if (!kept || kept[point]) chosen.push(point);
  const mean = new Float64Array(width);
  for (const point of chosen) for (let i = 0; i < width; i++) mean[i] += points[point * width + i] / chosen.length;
  const { values, vectors } = eigenvectors(covariance(points, width, chosen, mean), width);
  const total = values.reduce((sum, value) => sum + value, 0);
  const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a]);
  const scores = new Float32Array((points.length / width) * count);
  const shares = Array.from({ length: count }, () => 0);
  for (let component = 0; component < Math.min(count, width); component++) {
    const at = order[component];
    shares[component] = total > 0 ? values[at] / total : 0;
    let largest = 0;
    for (const point of chosen) {
      let score = 0;
      for (let i = 0; i < width; i++) score += (points[point * width + i] - mean[i]) * vectors[i * width + at];
      scores[point * count + component] = score;
      if (Math.abs(score) > Math.abs(largest)) largest = score;
    }
    if (largest < 0) for (const point of chosen) scores[point * count + component] *= -1;
  }
  return { scores, shares };
}

function covariance(points, width, chosen, mean) {
  const found = new Float64Array(width * width);
  const centred = new Float64Array(width);
  for (const point of chosen) {
    for (let i = 0; i < width; i++) centred[i] = points[point * width + i] - mean[i];
    for (let i = 0; i < width; i++) {
      const row = i * width;
      const value = centred[i] / chosen.length;
      for (let j = i; j < width; j++) found[row + j] += value * centred[j];
    }
  }
  for (let i = 0; i < width; i++) for (let j = 0; j < i; j++) found[i * width + j] = found[j * width + i];
  return found;
}

/** Eigenvalues, and eigenvectors as columns, of a symmetric matrix [width, width], by Jacobi's method. */
export function eigenvectors(matrix, width) {
  const vectors = new Float64Array(width * width);
  for (let i = 0; i < width; i++) vectors[i * width + i] = 1;
  const negligible = PRECISION * Math.sqrt(matrix.reduce((sum, value) => sum + value * value, 0));
  let rotations = 1;
  for (let sweep = 0; sweep < SWEEPS && rotations; sweep++) {
    rotations = 0;
    for (let p = 0; p < width; p++) {
      for (let q = p + 1; q < width; q++) {
        if (Math.abs(matrix[p * width + q]) <= negligible) continue;
        rotate(matrix, vectors, width, p, q);
        rotations++;
      }
    }
  }
  return { values: Float64Array.from({ length: width }, (_, i) => matrix[i * width + i]), vectors };
}

/** Turns the axes p and q so that the entry [p, q] becomes 0. */
function rotate(matrix, vectors, width, p, q) {
  const entry = matrix[p * width + q];
  const ratio = (matrix[q * width + q] - matrix[p * width + p]) / (2 * entry);
  const tangent = (ratio < 0 ? -1 : 1) / (Math.abs(ratio) + Math.hypot(1, ratio));
  const cosine = 1 / Math.hypot(1, tangent);
  const sine = tangent * cosine;
  for (let i = 0; i < width; i++) turn(matrix, i * width + p, i * width + q, cosine, sine);
  for (let i = 0; i < width; i++) turn(matrix, p * width + i, q * width + i, cosine, sine);
  for (let i = 0; i < width; i++) turn(vectors, i * width + p, i * width + q, cosine, sine);
}

function turn(values, p, q, cosine, sine) {
  const [first, second] = [values[p], values[q]];
  values[p] = cosine * first - sine * second;
  values[q] = sine * first + cosine * second;
}

/**
 * The points on one side of zero of the first component: the side that holds the smaller share of its pictures' edges.
 * All points if one side is empty.
 */
export function foreground(points, width, edges) {
  const isPositive = Uint8Array.from(edges, (_, point) => Number(points[point * width] > 0));
  const count = [0, 0];
  const onEdge = [0, 0];
  isPositive.forEach((side, point) => {
    count[side]++;
    onEdge[side] += edges[point];
  });
  if (!count[0] || !count[1]) return isPositive.fill(1);
  return onEdge[1] / count[1] <= onEdge[0] / count[0] ? isPositive : isPositive.map((side) => 1 - side);
}

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
