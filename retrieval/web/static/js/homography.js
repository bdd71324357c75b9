// Homographies: 3 by 3 matrices, rows first, that take pixels (x, y, 1) of one photo to those of another.

/** The product of two matrices. */
export function multiply(a, b) {
  return a.map((row) => b[0].map((_, j) => row.reduce((sum, value, k) => sum + value * b[k][j], 0)));
}

/** Where a homography takes a point. */
export function apply([[a, b, c], [d, e, f], [g, h, i]], [x, y]) {
  const w = g * x + h * y + i;
  return [(a * x + b * y + c) / w, (d * x + e * y + f) / w];
}

/** The homography that takes points back: the adjugate, which does as well as the inverse. */
export function invert([[a, b, c], [d, e, f], [g, h, i]]) {
  return [
    [e * i - f * h, c * h - b * i, b * f - c * e],
    [f * g - d * i, a * i - c * g, c * d - a * f],
    [d * h - e * g, b * g - a * h, a * e - b * d],
  ];
}

/**
 * The CSS transform that lays a query's picture over a photo's.
 *
 * CSS measures in its own pixels from the corner of an element, a homography in pixels of the originals from the centre
 * of the first one, half a pixel further in. So a point e of the query's element goes
 *
 *     e  →  x = e · query.width / shown.width - ½  →  x' = H x  →  (x' + ½) · stage.width / photo.width
 *
 * and the three steps are one matrix M. A matrix3d acts on (x, y, z, 1) and divides by the fourth coordinate: with z = 0
 * throughout, M's third row and column become its fourth. It lists columns first.
 *
 * @param matrix homography from the query's original to the photo's
 * @param query {width, height} of the query's original
 * @param shown {width, height} of its element, before the transform, whose origin must be 0 0
 * @param photo {width, height} of the photo's original
 * @param stage {width, height} of the element that shows the photo, whose corner the query's element shares
 */
export function toCss(matrix, query, shown, photo, stage) {
  const into = [[query.width / shown.width, 0, -0.5], [0, query.height / shown.height, -0.5], [0, 0, 1]];
  const x = stage.width / photo.width;
  const y = stage.height / photo.height;
  const out = [[x, 0, x / 2], [0, y, y / 2], [0, 0, 1]];
  const [[a, b, c], [d, e, f], [g, h, i]] = multiply(out, multiply(matrix, into));
  return `matrix3d(${[a, d, 0, g, b, e, 0, h, 0, 0, 1, 0, c, f, 0, i].join(",")})`;
}

/**
 * Half axes and direction of the ellipse a·dx² + 2b·dx·dy + c·dy² = 1.
 *
 * The eigenvalues of [[a, b], [b, c]] are the inverse squares of the half axes; the direction of the larger one, which is
 * the shorter axis, is ½·atan2(2b, a - c).
 *
 * @returns {{rx: number, ry: number, degrees: number}} rx is along `degrees`, clockwise as y points down
 */
export function ellipse([a, b, c]) {
  const mean = (a + c) / 2;
  const half = Math.hypot((a - c) / 2, b);
  return {
    rx: 1 / Math.sqrt(mean + half),
    ry: 1 / Math.sqrt(Math.max(mean - half, 1e-12)),
    degrees: (90 / Math.PI) * Math.atan2(2 * b, a - c),
  };
}
