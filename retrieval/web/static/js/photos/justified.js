// A justified layout: rows of photos that fill the width, each photo in its own shape. Numbers in, numbers out.

const UNKNOWN = 133; // width over height of a photo that says none, in hundredths
const HEAD = 44; // pixels above the first row of a group, for its heading
const [NARROWEST, WIDEST] = [30, 400]; // shapes beyond are cut to these, in hundredths: a strip would make a row of its own

/** Height that rows should have in a wall so wide: about four to eight photos of usual shape fit in one, two on a phone. */
export const rowHeight = (width) => Math.round(Math.min(Math.max(width / 6.5, 116), 260));

/**
 * Lay photos out.
 * @param ratios width over height of each, in hundredths; 0: not known
 * @param width of the wall, pixels
 * @param height that rows should have, about
 * @param gap between photos and between rows
 * @param groups [{place, text}]: a heading above the photo of each place, which begins a row
 * @returns {heads: headings by row, {top, text}; starts: first photo of each row, and their number at the end; tops: of each row, and the height of all at the end;
 *   heights: of each row; ratios, width, gap}
 */
export function justify(ratios, width, height, gap, groups = []) {
  const shape = (place) => Math.min(Math.max(ratios[place] || UNKNOWN, NARROWEST), WIDEST) / 100;
  const starts = [0];
  const tops = [0];
  const heights = [];
  const heads = new Map();
  const headings = new Map(groups.map(({ place, text }) => [place, text]));
  let first = 0;
  let sum = 0; // of the shapes of the row
  const close = (end, tall) => {
    heights.push(tall);
    tops.push(tops.at(-1) + tall + gap);
    starts.push(end);
    first = end;
    sum = 0;
  };
  for (let place = 0; place < ratios.length; place += 1) {
    if (headings.has(place)) {
      if (first < place) close(place, height); // the last row of a group is as it is
      heads.set(heights.length, { top: tops.at(-1), text: headings.get(place) });
      tops[tops.length - 1] += HEAD;
    }
    const before = sum;
    sum += shape(place);
    const room = width - gap * (place - first);
    if (room / sum > height) continue;
    // The row is full: with this photo it is lower than it should be, without it higher. The nearer one is taken.
    const without = before ? (room + gap) / before : Infinity;
    if (without / height < height / (room / sum)) {
      close(place, without);
      sum = shape(place);
      if (width / sum <= height) close(place + 1, width / sum);
    } else {
      close(place + 1, room / sum);
    }
  }
  if (first < ratios.length) close(ratios.length, height); // the last row is as it is
  return { starts, tops, heights, ratios, width, gap, heads };
}

/** Height of all rows. */
export const total = ({ tops, heights, gap }) => (heights.length ? tops.at(-1) - gap : 0);

/** The last place of an ascending list whose value is not above one. */
function last(list, value) {
  let [low, high] = [0, list.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (list[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The row at a height from the top. */
export const rowAt = ({ tops, heights }, y) => Math.min(last(tops, y), Math.max(heights.length - 1, 0));

/** The row of a photo. */
export const rowOf = ({ starts, heights }, place) => Math.min(last(starts, place), Math.max(heights.length - 1, 0));

/** Where the photos of a row are: [{place, left, top, width, height}]. */
export function boxes({ starts, tops, heights, ratios, gap }, row) {
  const found = [];
  let left = 0;
  for (let place = starts[row]; place < starts[row + 1]; place += 1) {
    const width = (heights[row] * Math.min(Math.max(ratios[place] || UNKNOWN, NARROWEST), WIDEST)) / 100;
    found.push({ place, left, top: tops[row], width, height: heights[row] });
    left += width + gap;
  }
  return found;
}

/** The photo that is above (way -1) or below (way 1) one: the one in the next row whose middle is nearest. */
export function beside(layout, place, way) {
  const row = rowOf(layout, place);
  const next = row + way;
  if (next < 0 || next >= layout.heights.length) return place;
  const middle = ({ left, width }) => left + width / 2;
  const from = middle(boxes(layout, row)[place - layout.starts[row]]);
  const far = (box) => Math.abs(middle(box) - from);
  return boxes(layout, next).reduce((best, box) => (far(box) < far(best) ? box : best)).place;
}
