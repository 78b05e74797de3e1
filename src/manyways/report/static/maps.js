"use strict";
// The data of the page, colours and maps. All text is inserted as text, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
const world = data.world;
const drawn = world.rows !== undefined;
const get = (id) => document.getElementById(id);
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const printed = (text) => text.replace(/(^|[^\w.)='-])-(?=\d)/g, "$1−"); // as in minus.py
const say = (text) => { get("said").textContent = text; };

// ---- colours: read from the style sheet, so that maps follow the light or dark scheme ----------

let colours = {};
const dot = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function rgb(colour) {
  dot.fillStyle = colour;
  dot.fillRect(0, 0, 1, 1);
  return [...dot.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["map", "time", "wall", "start", "goal", "on-mark", "runner", "left", "right", "better", "worse"]) colours[name] = rgb(style.getPropertyValue("--" + name).trim());
}
const css = (name) => `rgb(${colours[name].join(" ")})`;
const blend = (from, to, share) => from.map((value, i) => value + (to[i] - value) * share);

// ---- maps -------------------------------------------------------------------------------------

const cells = drawn ? world.rows * world.columns : 0;
const walls = drawn ? bytes(world.walls) : null;
const ground = (cell) => blend(colours.map, colours.wall, walls[cell] / 255);

function unpack(plan) {
  if (!plan.bytes) plan.bytes = bytes(plan.time);
  return plan.bytes;
}
const share = (plan, cell) => (unpack(plan)[cell] / 255) ** 2 * plan.peak;

function picture(colourOf) {
  const image = new ImageData(world.columns, world.rows);
  for (let cell = 0; cell < cells; cell++) {
    const [red, green, blue] = colourOf(cell);
    image.data.set([red, green, blue, 255], 4 * cell);
  }
  const sheet = document.createElement("canvas");
  sheet.width = world.columns;
  sheet.height = world.rows;
  sheet.getContext("2d").putImageData(image, 0, 0);
  return sheet;
}

function timePicture(plan) {
  const time = unpack(plan);
  // Every visited cell must be visible, so the ramp starts above zero. A wall that is crossed must stay recognisable.
  return picture((cell) => {
    const level = time[cell] / 255, most = 1 - (0.5 * walls[cell]) / 255;
    return level > 0.012 ? blend(ground(cell), colours.time, most * (0.12 + 0.88 * level)) : ground(cell);
  });
}

function differencePicture(one, other) {
  let most = 1e-12;
  for (let cell = 0; cell < cells; cell++) most = Math.max(most, Math.abs(share(one, cell) - share(other, cell)));
  return picture((cell) => {
    const gap = share(one, cell) - share(other, cell);
    const level = Math.sqrt(Math.abs(gap) / most);
    return level > 0.03 ? blend(ground(cell), gap > 0 ? colours.left : colours.right, 0.1 + 0.9 * level) : ground(cell);
  });
}

const floats = (text) => new Float32Array(bytes(text).buffer);

// What is preferred and what is avoided: numbers for each cell, of which `full` or -`full` has the full colour.
function preferencePicture(mean, full) {
  const least = matchMedia("(prefers-color-scheme: dark)").matches ? 0.3 : 0.1; // weak colours are lost on dark ground
  return picture((cell) => {
    const value = mean[cell], level = Math.abs(value) / full;
    if (Number.isNaN(value) || walls[cell] > 127 || level < 0.02) return ground(cell);
    return blend(ground(cell), value > 0 ? colours.left : colours.right, least + (1 - least) * level);
  });
}

function mark(pen, cell, size, name, letter, square) {
  const x = ((cell % world.columns) + 0.5) * size, y = (Math.floor(cell / world.columns) + 0.5) * size;
  const dot = window.devicePixelRatio || 1;
  const radius = Math.min(Math.max(size * 0.5, 8 * dot), 14 * dot);
  pen.fillStyle = css(name);
  pen.beginPath();
  if (square) pen.rect(x - radius, y - radius, 2 * radius, 2 * radius); else pen.arc(x, y, radius, 0, 7);
  pen.fill();
  pen.fillStyle = css("on-mark");
  pen.font = `bold ${1.3 * radius}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(letter, x, y + radius * 0.08);
}

function paint(canvas, sheet, trail) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
  const size = width / world.columns;
  if (canvas.width !== width) {
    canvas.width = width;
    canvas.height = Math.round(size * world.rows);
  }
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.drawImage(sheet, 0, 0, canvas.width, canvas.height);
  for (const cell of world.start) mark(pen, cell, size, "start", "S", false);
  for (const cell of world.goals) mark(pen, cell, size, "goal", "G", true);
  if (!trail) return;
  const radius = Math.max(size * 0.36, 4 * ratio);
  trail.forEach((cell, i) => {
    const last = i === trail.length - 1;
    pen.globalAlpha = last ? 1 : (0.5 * (i + 1)) / trail.length;
    pen.fillStyle = css("runner");
    pen.beginPath();
    pen.arc(((cell % world.columns) + 0.5) * size, (Math.floor(cell / world.columns) + 0.5) * size, last ? radius : radius * 0.6, 0, 7);
    pen.fill();
    if (last) {
      pen.lineWidth = Math.max(1, radius * 0.25);
      pen.strokeStyle = "#000";
      pen.stroke();
    }
  });
  pen.globalAlpha = 1;
}
