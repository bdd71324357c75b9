// The map's arithmetic: Mercator's projection onto a square of side 1, and photos gathered where they would lie on each other.

const EARTH = 6371.0088; // kilometres
const TOP = 85.0511; // degrees: the square ends there
const RADIANS = Math.PI / 180;

/** Where a place is in the square: [x to the east, y to the south]. */
export function project(latitude, longitude) {
  const north = Math.min(Math.max(latitude, -TOP), TOP) * RADIANS;
  return [(longitude + 180) / 360, 0.5 - Math.log(Math.tan(Math.PI / 4 + north / 2)) / (2 * Math.PI)];
}

/** The place of a point of the square: [latitude, longitude]. */
export const unproject = (x, y) => [Math.atan(Math.sinh((0.5 - y) * 2 * Math.PI)) / RADIANS, x * 360 - 180];

/** Kilometres between two places. */
export function distance([north, east], [north2, east2]) {
  const across = Math.sin((RADIANS * (east2 - east)) / 2);
  const along = Math.sin((RADIANS * (north2 - north)) / 2);
  const haversine = along * along + Math.cos(RADIANS * north) * Math.cos(RADIANS * north2) * across * across;
  return 2 * EARTH * Math.asin(Math.sqrt(Math.min(haversine, 1)));
}

/**
 * Gather points that share a cell of a grid.
 * @param xs, ys points of the square
 * @param cell side of the grid's cells
 * @returns [{place: of the first one, count, x, y: their middle, box: [left, top, right, bottom]}]
 */
export function gather(xs, ys, cell) {
  const columns = Math.ceil(1 / cell) + 1;
  const cells = new Map();
  for (let place = 0; place < xs.length; place += 1) {
    const [x, y] = [xs[place], ys[place]];
    const key = Math.floor(y / cell) * columns + Math.floor(x / cell);
    const one = cells.get(key);
    if (!one) {
      cells.set(key, { place, count: 1, x, y, box: [x, y, x, y] });
      continue;
    }
    one.count += 1;
    one.x += x;
    one.y += y;
    const { box } = one;
    if (x < box[0]) box[0] = x;
    if (y < box[1]) box[1] = y;
    if (x > box[2]) box[2] = x;
    if (y > box[3]) box[3] = y;
  }
  return [...cells.values()].map((one) => ({ ...one, x: one.x / one.count, y: one.y / one.count }));
}

/**
 * A box of the square as the filter `within` has it: SOUTH,WEST,NORTH,EAST. Places come in five digits, and lie within half of the
 * last one. What lies in the box of a cell's points lies in the cell, so that it is just these.
 */
export function within([left, top, right, bottom]) {
  const half = 0.000005;
  const [north, west] = unproject(left, top);
  const [south, east] = unproject(right, bottom);
  const least = south < -TOP + half ? -90 : Math.max(+south.toFixed(5) - half, -90); // nearer to a pole all are on the edge
  const most = north > TOP - half ? 90 : Math.min(+north.toFixed(5) + half, 90);
  const sides = [least, Math.max(+west.toFixed(5) - half, -180), most, Math.min(+east.toFixed(5) + half, 180)];
  return sides.map((one) => one.toFixed(6)).join(",");
}

/**
 * The zoom and middle that show a box in a window: [x, y, zoom].
 *
 * @param most zoom
 * @param edge pixels around the box that stay free
 * @param aside pixels more at the right, where something else stands
 */
export function fit([left, top, right, bottom], width, height, most, edge, aside) {
  const along = Math.max(width - 2 * edge - aside, edge) / Math.max(right - left, 1e-9);
  const down = Math.max(height - 2 * edge, edge) / Math.max(bottom - top, 1e-9);
  const zoom = Math.min(Math.log2(Math.min(along, down) / 256), most);
  return [(left + right) / 2 + aside / 2 / (256 * 2 ** zoom), (top + bottom) / 2, zoom];
}
