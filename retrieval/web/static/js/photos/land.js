// The outline of the land that is kept here, drawn below what a map shows.

import { figure } from "../language.js";
import { root } from "../root.js";
import { project, unproject } from "./mercator.js";

export const TILE = 256; // pixels of the world's side at zoom 0
const GRID = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001]; // degrees between lines

/** Fetch the outline. */
export const readOutline = async () => paths(await (await fetch(`${root}/static/world.json`)).json());

/** The outline as paths in the square of the projection. */
function paths({ scale: parts, land, borders }) {
  const path = new Path2D();
  const lines = new Path2D();
  const trace = (into, line, close) => {
    let [east, north] = [0, 0];
    for (let place = 0; place < line.length; place += 2) {
      east += line[place];
      north += line[place + 1];
      const [x, y] = project(north / parts, east / parts);
      if (place) into.lineTo(x, y);
      else into.moveTo(x, y);
    }
    if (close) into.closePath();
  };
  for (const line of land) trace(path, line, true);
  for (const line of borders) trace(lines, line, false);
  return { land: path, borders: lines };
}

/**
 * Draw the land, and lines of latitude and longitude.
 *
 * @param canvas whose style has the colours
 * @param world as `readOutline` gives it; null: not yet
 * @param now middle and zoom of the map: {x, y, zoom}
 * @param size width and height in pixels
 */
export function drawLand(canvas, world, now, [width, height]) {
  const ratio = Math.min(devicePixelRatio, 2);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  const colour = (name) => { // as it is in the scheme of the page
    canvas.style.setProperty("color", `var(${name})`);
    return getComputedStyle(canvas).color;
  };
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = colour("--sea");
  context.fillRect(0, 0, width, height);
  const side = TILE * 2 ** now.zoom;
  const [left, top] = [width / 2 - now.x * side, height / 2 - now.y * side];
  if (world) {
    context.save();
    context.setTransform(ratio * side, 0, 0, ratio * side, ratio * left, ratio * top);
    context.beginPath();
    context.rect(0, 0, 1, 1);
    context.clip();
    context.fillStyle = colour("--land");
    context.lineWidth = 1 / side;
    for (const round of [-1, 0, 1]) { // what crosses 180° is on both sides
      context.setTransform(ratio * side, 0, 0, ratio * side, ratio * (left + round * side), ratio * top);
      context.fill(world.land, "evenodd");
      context.strokeStyle = colour("--coast");
      context.stroke(world.land);
      context.strokeStyle = colour("--border");
      context.stroke(world.borders);
    }
    context.restore();
  }
  // Lines of latitude and longitude: where the outline says nothing any more, they still say where one is.
  const step = GRID.findLast((degrees) => (degrees / 360) * side >= 110) ?? GRID[0];
  const [north, west] = unproject(now.x - width / 2 / side, now.y - height / 2 / side);
  const [south, east] = unproject(now.x + width / 2 / side, now.y + height / 2 / side);
  context.strokeStyle = colour("--grid");
  context.fillStyle = colour("--faint");
  context.lineWidth = 1;
  context.font = "11px system-ui, sans-serif";
  context.beginPath();
  for (let degrees = Math.ceil(Math.max(west, -180) / step) * step; degrees <= Math.min(east, 180); degrees += step) {
    const x = Math.round(left + project(0, degrees)[0] * side) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, height);
    context.fillText(`${figure(degrees, { maximumFractionDigits: 3 })}°`, x + 3, height - 5);
  }
  for (let degrees = Math.ceil(Math.max(south, -85) / step) * step; degrees <= Math.min(north, 85); degrees += step) {
    const y = Math.round(top + project(degrees, 0)[1] * side) + 0.5;
    context.moveTo(0, y);
    context.lineTo(width, y);
    context.fillText(`${figure(degrees, { maximumFractionDigits: 3 })}°`, 4, y - 3);
  }
  context.stroke();
}
