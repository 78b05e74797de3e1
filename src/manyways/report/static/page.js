// Compares two plans, plays sampled runs and sorts the table. All numbers are in the page. Needs maps.js.

// ---- stages: elements that show a plan and can play it ----------------------------------------

class Stage {
  constructor(element, moment, plan) {
    Object.assign(this, { element, moment, plan, step: -1 });
  }
  show(plan) {
    this.plan = plan;
    this.sheet = null;
    this.step = -1;
    this.draw();
  }
  get run() { return data.plans[this.plan].runs[settings.run]; }
  get trail() { return this.step < 0 ? null : this.run.at.slice(Math.max(0, this.step - 11), this.step + 1); }
  draw() {
    if (this.plan === null) return;
    if (drawn && this.element) {
      this.sheet = this.sheet || timePicture(data.plans[this.plan]);
      paint(this.element, this.sheet, this.trail);
    } else if (this.element) {
      const now = Math.max(this.step, 0);
      this.element.replaceChildren(...this.run.at.slice(Math.max(0, now - 8), now + 1).map((choice) => item(data.visited[choice])));
    }
    if (this.moment) this.moment.textContent = this.step < 0 ? "" : this.caption();
  }
  caption() {
    const step = this.step, { met, ends, earned, at } = this.run;
    const before = met.filter((when) => when < step), last = before.length ? before[before.length - 1] : -1;
    const place = drawn ? "" : `, ${data.visited[at[step]]}`;
    let words = `step ${step - last}${place}`, round = met.length ? `round ${before.length + 1}: ` : "";
    if (ends) {
      round = `episode ${before.length + 1}: `;
      if (met.includes(step)) words += ends[before.length] === "goal" ? ", then the goal" : `, then the end (${ends[before.length]})`;
    } else if (met.includes(step)) words = `reached the goal after ${step - last - 1} steps${place}`;
    return `${round}${words}; expected ${data.noun} so far ${earned[step].toPrecision(4)}`;
  }
  advance() {
    this.step = Math.min(this.step + 1, this.run.at.length - 1);
    this.draw();
    return this.step < this.run.at.length - 1;
  }
  redraw() { this.sheet = null; this.draw(); }
}

function item(text) {
  const element = document.createElement("li");
  element.textContent = text;
  return element;
}

// ---- play -------------------------------------------------------------------------------------

const settings = { run: 0, pace: 8 };
const playing = new Map(); // button -> the stages that it plays
let due = 0;

function tick(now) {
  if (!playing.size) return;
  if (now >= due) {
    const steps = Math.max(1, Math.min(8, Math.floor((now - due) / (1000 / settings.pace)) + 1));
    due = now + 1000 / settings.pace;
    for (const [button, stages] of playing) {
      let going = false;
      for (let i = 0; i < (settings.pace > 60 ? steps : 1); i++) going = stages.map((stage) => stage.advance()).some(Boolean);
      if (!going) stop(button);
    }
  }
  requestAnimationFrame(tick);
}

function start(button, stages) {
  if (stages.every((stage) => stage.step >= stage.run.at.length - 1)) stages.forEach((stage) => { stage.step = -1; });
  button.setAttribute("aria-pressed", "true");
  button.querySelector(".verb").textContent = "Pause";
  const first = playing.size === 0;
  playing.set(button, stages);
  if (first) { due = performance.now(); requestAnimationFrame(tick); }
}

function stop(button) {
  playing.delete(button);
  button.setAttribute("aria-pressed", "false");
  button.querySelector(".verb").textContent = "Play";
}

function toggle(button, stages) {
  if (playing.has(button)) stop(button); else start(button, stages);
}

// ---- cards ------------------------------------------------------------------------------------

const cards = [...document.querySelectorAll(".card")];
const stages = new Map();
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    near.unobserve(entry.target);
    stages.get(entry.target.closest(".card")).draw();
  }
}, { rootMargin: "400px" });

for (const card of cards) {
  const canvas = card.querySelector("canvas.map");
  stages.set(card, new Stage(canvas, card.querySelector("[data-moment]"), Number(card.dataset.plan)));
  if (canvas) near.observe(canvas);
}

// The first press of Compare remembers a plan; the second press, on another card, shows both.
let picked = null;
function pick(plan) {
  picked = plan;
  for (const card of cards) {
    const own = Number(card.dataset.plan) === plan, button = card.querySelector('[data-do="compare"]');
    card.classList.toggle("picked", own);
    button.setAttribute("aria-pressed", own);
    button.querySelector(".verb").textContent = plan === null ? "Compare" : own ? "Pick another" : `Compare with plan ${plan + 1}`;
  }
}
function showPair(one, other) {
  compare(one, other);
  get("compare").scrollIntoView({ block: "start" });
  get("right").focus({ preventScroll: true });
}
get("plans").addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (!button) return;
  const card = button.closest(".card"), plan = Number(card.dataset.plan);
  if (button.dataset.do === "play") toggle(button, [stages.get(card)]);
  if (button.dataset.do === "compare") {
    const first = picked;
    pick(first === null ? plan : null);
    if (first !== null && first !== plan) showPair(first, plan);
    else say(first === null ? `Plan ${plan + 1} is picked. Press Compare on another plan.` : "No plan is picked.");
  }
});
get("plans").addEventListener("change", (event) => {
  if (event.target.name !== "favourite") return;
  cards.forEach((card) => card.classList.toggle("chosen", card.contains(event.target)));
  const line = get("favourite");
  line.hidden = false;
  line.querySelector("code").textContent = `manyways export ${line.dataset.file} policy.json --plan ${event.target.value}`;
  line.querySelector("span").textContent = `You chose plan ${event.target.value}. To save it as a file:`;
});
if (get("favourite")) get("favourite").querySelector("button").addEventListener("click", () => {
  get("favourite").hidden = true;
  document.querySelectorAll("[name=favourite]").forEach((radio) => { radio.checked = false; });
  cards.forEach((card) => card.classList.remove("chosen"));
});

// ---- compare ----------------------------------------------------------------------------------

const titleOf = (plan) => cards[plan].querySelector(".title").textContent;
function farthest(plan) {
  const row = data.distances[plan];
  return row.reduce((best, value, other) => (other !== plan && (best === plan || value > row[best]) ? other : best), plan);
}

let left = null, right = null;
function compare(one, other) {
  get("left").value = one;
  get("right").value = other;
  stop(get("play"));
  left.show(one);
  right.show(other);
  document.querySelectorAll("[data-left]").forEach((place) => { place.textContent = one + 1; });
  document.querySelectorAll("[data-right]").forEach((place) => { place.textContent = other + 1; });
  nameSides();
  const apart = data.distances[one][other];
  const much = one === other ? "the same plan twice" : data.grades[data.likeness[one][other]];
  get("apart").textContent = `Plans ${one + 1} and ${other + 1} are ${much}: distance ${apart.toFixed(2)} of at most 0.69.`;
  showDifference(data.plans[one], data.plans[other]);
}

function nameSides() {
  for (const [id, stage] of [["left", left], ["right", right]]) get(`${id}-name`).textContent = `Plan ${stage.plan + 1}: ${titleOf(stage.plan)}`;
}

function showDifference(one, other) {
  const place = get("difference");
  if (drawn) {
    paint(place, differencePicture(one, other));
    place.shown = [one, other];
    return;
  }
  const rows = world.names.map((name, i) => ({ name, gap: one.shares[i] - other.shares[i] }))
    .filter((row) => Math.abs(row.gap) > 5e-4).sort((a, b) => Math.abs(b.gap) - Math.abs(a.gap)).slice(0, 12);
  const most = Math.max(...rows.map((row) => Math.abs(row.gap)), 1e-9);
  place.replaceChildren(...rows.map((row) => differenceBar(row, most)));
  if (!rows.length) place.textContent = "The two plans do the same for nearly all of their time.";
}

function differenceBar(row, most) {
  const line = document.createElement("div");
  line.className = "bar";
  const what = Object.assign(document.createElement("span"), { className: "what", textContent: row.name, title: row.name });
  const track = Object.assign(document.createElement("span"), { className: "line" });
  const bar = Object.assign(document.createElement("span"), { className: row.gap > 0 ? "of-left" : "of-right" });
  bar.style.width = `${(100 * Math.abs(row.gap)) / most}%`;
  track.append(bar);
  const number = Object.assign(document.createElement("span"), { className: "share" });
  number.textContent = `+${(100 * Math.abs(row.gap)).toFixed(1)} %`;
  line.append(what, track, number);
  return line;
}

if (get("compare")) {
  left = new Stage(get("left-map"), get("left-moment"), null);
  right = new Stage(get("right-map"), get("right-moment"), null);
  const both = () => [left, right];
  data.plans[0].runs.forEach((_, i) => get("run").append(new Option(`${i + 1}`, i)));
  for (const id of ["left", "right"]) get(id).addEventListener("change", () => compare(Number(get("left").value), Number(get("right").value)));
  get("play").addEventListener("click", () => toggle(get("play"), both()));
  get("again-from-start").addEventListener("click", () => both().forEach((stage) => { stage.step = 0; stage.draw(); }));
  get("run").addEventListener("change", () => {
    settings.run = Number(get("run").value);
    for (const stage of [left, right, ...stages.values()]) if (stage.step >= 0) { stage.step = 0; stage.draw(); }
  });
  get("speed").addEventListener("input", () => {
    settings.pace = 2 ** Number(get("speed").value);
    get("speed").setAttribute("aria-valuetext", `${Math.round(settings.pace)} steps a second`);
    due = performance.now();
  });
  if (drawn) get("difference").addEventListener("pointermove", (event) => {
    const place = get("difference"), box = place.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * world.columns);
    const row = Math.floor(((event.clientY - box.top) / box.height) * world.rows);
    if (column < 0 || row < 0 || column >= world.columns || row >= world.rows) return;
    const [one, other] = place.shown.map((plan) => (100 * share(plan, row * world.columns + column)).toFixed(1));
    get("pointed").textContent = `row ${row * world.block}, column ${column * world.block}: ${one} % and ${other} % of the time`;
  });
}

// ---- the table --------------------------------------------------------------------------------

get("measures").addEventListener("click", (event) => {
  const button = event.target.closest("[data-sort]");
  if (!button) return;
  const heading = button.closest("th"), index = Number(button.dataset.sort);
  const first = index && Number(button.dataset.better) >= 0 ? "descending" : "ascending"; // the best on top
  const other = first === "ascending" ? "descending" : "ascending";
  const order = heading.getAttribute("aria-sort") === first ? other : first;
  heading.closest("tr").querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", order);
  const body = get("measures").tBodies[0];
  const value = (row) => Number(row.cells[index].dataset.value === "-inf" ? -Infinity : row.cells[index].dataset.value);
  const sign = order === "ascending" ? 1 : -1;
  body.append(...[...body.rows].sort((a, b) => (value(a) === value(b) ? 0 : sign * (value(a) > value(b) ? 1 : -1))));
  say(`Sorted by ${button.textContent}, ${order}.`);
});

// ---- many plans: distances as a picture -------------------------------------------------------

const heat = get("heat");
function paintHeat() {
  const k = data.plans.length, image = new ImageData(k, k);
  data.distances.forEach((row, i) => row.forEach((value, j) => {
    image.data.set([...blend(colours.map, colours.better, value / Math.LN2), 255], 4 * (i * k + j));
  }));
  heat.width = heat.height = k;
  heat.getContext("2d").putImageData(image, 0, 0);
}
if (heat) {
  const pair = (event) => {
    const box = heat.getBoundingClientRect(), k = data.plans.length;
    const at = (offset, length) => Math.max(0, Math.min(k - 1, Math.floor((offset / length) * k)));
    return [at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)];
  };
  heat.addEventListener("pointermove", (event) => {
    const [i, j] = pair(event);
    get("heat-text").textContent = `plans ${i + 1} and ${j + 1}: ${data.distances[i][j].toFixed(2)} (press to compare)`;
  });
  heat.addEventListener("click", (event) => showPair(...pair(event)));
}
if (get("distances")) get("distances").addEventListener("click", (event) => {
  const button = event.target.closest("[data-pair]");
  if (button) showPair(...button.dataset.pair.split(" ").map(Number));
});

// ---- first drawing, and drawing again ---------------------------------------------------------

function paintSuits() {
  if (!data.suits) return;
  for (const canvas of document.querySelectorAll("[data-suits]")) {
    const own = data.suits[Number(canvas.dataset.suits)];
    paint(canvas, own ? preferencePicture(floats(own.mean), own.full) : picture(ground));
  }
}
function redrawAll() {
  readColours();
  paintSuits();
  if (heat) paintHeat();
  for (const stage of stages.values()) if (stage.sheet) stage.redraw();
  if (left) {
    left.redraw();
    right.redraw();
    showDifference(data.plans[left.plan], data.plans[right.plan]);
  }
}
readColours();
paintSuits();
if (heat) paintHeat();
if (left) compare(0, farthest(0));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
let resizing = 0;
addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(redrawAll); });
