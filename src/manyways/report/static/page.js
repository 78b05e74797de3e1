// Shows all plans in one picture, compares two, plays sampled runs, sorts the table and hands out files. All numbers are in the page. Needs maps.js.

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
      this.element.classList.toggle("running", this.step >= 0); // the box keeps its height while lines come and go
      this.element.replaceChildren(...this.run.at.slice(Math.max(0, now - 8), now + 1).map((choice) => item(data.visited[choice])));
    }
    if (this.moment) this.moment.textContent = this.step < 0 ? (drawn ? "" : "the start; press Play both to see the run") : this.caption();
  }
  caption() {
    const step = this.step, { met, ends, earned, expected, at } = this.run;
    const before = met.filter((when) => when < step), last = before.length ? before[before.length - 1] : -1;
    const place = drawn ? "" : `, ${data.visited[at[step]]}`;
    let words = `step ${step - last}${place}`, round = met.length ? `round ${before.length + 1}: ` : "";
    if (ends) {
      round = `episode ${before.length + 1}: `;
      if (met.includes(step)) words += ends[before.length] === "goal" ? ", then the goal" : `, then the end (${ends[before.length]})`;
    } else if (met.includes(step)) words = `reached the goal after ${step - last - 1} steps${place}`;
    return `${round}${words}; ${expected ? "expected " : ""}${data.noun} so far ${printed(earned[step].toPrecision(4))}`;
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

// ---- the plans in one picture -------------------------------------------------------------------

const cards = [...document.querySelectorAll(".card")].sort((a, b) => a.dataset.plan - b.dataset.plan);
const overview = get("overview");
let pinned = null, shown = null; // the plan that was pressed, and the one that is seen now

// Show one plan and dim the others; null shows all.
function show(plan) {
  if (plan === shown) return;
  shown = plan;
  document.querySelectorAll(".hero [data-of], .strip [data-of]").forEach((part) => {
    part.classList.toggle("dim", plan !== null && Number(part.dataset.of) !== plan);
    part.classList.toggle("lit", Number(part.dataset.of) === plan);
  });
  cards.forEach((card, i) => card.classList.toggle("on", i === plan));
  if (overview) showTime(plan); else if (get("heat-key")) swapKeys(plan);
}

function swapKeys(plan) {
  get("heat-key").hidden = plan === null;
  document.querySelector(".for-all").hidden = plan !== null;
  if (plan !== null) get("heat-key").style.setProperty("--c", `rgb(${colourOf(plan).join(" ")})`);
}

const colourOf = (plan) => rgb(getComputedStyle(cards[plan]).getPropertyValue("--c").trim());

// The time that a plan spends in each place as colour, and its moves as arrows.
function showTime(plan) {
  const layer = get("heat-layer");
  swapKeys(plan);
  get("moves").replaceChildren();
  if (plan === null) { layer.removeAttribute("href"); return; }
  const own = data.plans[plan], time = bytes(own.time), colour = colourOf(plan), image = new ImageData(world.columns, world.rows);
  time.forEach((value, cell) => image.data.set([...colour, value < 4 ? 0 : 20 + 0.62 * value], 4 * cell));
  const sheet = Object.assign(document.createElement("canvas"), { width: world.columns, height: world.rows });
  sheet.getContext("2d").putImageData(image, 0, 0);
  layer.setAttribute("href", sheet.toDataURL());
  get("heat-most").textContent = `time spent: up to ${(100 * own.peak).toFixed(1)} % of all steps in one place`;
  const scale = Number(overview.dataset.scale), lines = { often: "", seldom: "" };
  for (const code of own.arrows) {
    const cell = Math.floor(code / 24), turn = ((code % 24) * Math.PI) / 12;
    const x = ((cell % world.columns) + 0.5) * scale, y = (Math.floor(cell / world.columns) + 0.5) * scale;
    if (time[cell] > 3) lines[time[cell] > 12 ? "often" : "seldom"] += arrow(x, y, turn, 0.3 * scale);
  }
  for (const [name, d] of Object.entries(lines)) if (d) get("moves").append(drawing("path", { class: `move ${name}`, d, "stroke-width": 0.05 * scale }));
}

function arrow(x, y, turn, size) {
  const at = (along, across) => `${(x + size * (along * Math.cos(turn) - across * Math.sin(turn))).toFixed(1)} ${(y + size * (along * Math.sin(turn) + across * Math.cos(turn))).toFixed(1)}`;
  return `M${at(-1, 0)}L${at(1, 0)}M${at(0.3, -0.55)}L${at(1, 0)}L${at(0.3, 0.55)}`;
}

function drawing(name, settings) {
  const element = document.createElementNS(overview.namespaceURI, name);
  for (const [key, value] of Object.entries(settings)) element.setAttribute(key, value);
  return element;
}

// Keep a plan in the picture, or let it go.
function pin(plan) {
  pinned = plan;
  cards.forEach((card, i) => card.querySelector(".way").setAttribute("aria-pressed", i === plan));
  if (plan !== null) {
    for (let part = cards[plan].parentElement.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  }
  show(plan);
  if (get("play-all")) {
    if (playing.has(get("play-all"))) stop(get("play-all"));
    get("play-all").querySelector(".whom").textContent = plan === null ? "all" : `plan ${plan + 1}`;
    get("compare-two").textContent = plan === null ? "Compare two" : `Compare plan ${plan + 1}`;
  }
}

for (const [i, card] of cards.entries()) {
  const head = card.querySelector("h3");
  card.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") show(i); });
  card.addEventListener("pointerleave", () => show(pinned));
  head.addEventListener("focusin", () => show(i));
  head.addEventListener("focusout", () => show(pinned));
}
if (overview) for (const line of overview.querySelectorAll(".way-line")) {
  const plan = Number(line.dataset.of);
  line.addEventListener("pointerenter", () => show(plan));
  line.addEventListener("pointerleave", () => show(pinned));
  line.addEventListener("click", () => pin(pinned === plan ? null : plan));
}
get("plans").addEventListener("keydown", (event) => {
  const ways = cards.map((card) => card.querySelector(".way")).filter((way) => way.checkVisibility());
  ways.sort((a, b) => (a.compareDocumentPosition(b) & 4 ? -1 : 1));
  const at = ways.indexOf(document.activeElement), by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (at < 0 || !by) return;
  event.preventDefault();
  ways[(at + by + ways.length) % ways.length].focus();
});
addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { if (closed !== null) close(null); clearRunners(); if (picked !== null) pick(null); pin(null); }
  else if (/^[1-9]$/.test(event.key) && cards[event.key - 1]) pin(Number(event.key) - 1);
});

// Names of cells, such as r5c7, in sentences: pointing at one marks its place on the map.
function markCells(sentence) {
  const parts = sentence.textContent.split(/\b(r\d+c\d+)\b/);
  if (parts.length < 2) return;
  sentence.replaceChildren(...parts.map((part, i) => {
    if (i % 2 === 0) return part;
    const [row, column] = part.slice(1).split("c").map(Number), name = element("span", { className: "cell-name", textContent: part });
    if (row >= world.rows || column >= world.columns) return part;
    name.title = `row ${row}, column ${column}, counted from 0 at the top left`;
    const scale = Number(overview.dataset.scale);
    const frame = drawing("rect", { class: "pointed-cell", x: column * scale, y: row * scale, width: scale, height: scale });
    name.addEventListener("pointerenter", () => get("runners").append(frame));
    name.addEventListener("pointerleave", () => frame.remove());
    return name;
  }));
}
if (overview && world.block === 1) document.querySelectorAll(".card .words li, .card .about").forEach(markCells);

// A plan that runs through the picture: a disc on the map, or words where there is no map.
class Runner extends Stage {
  constructor(plan) {
    super(null, null, plan);
    if (!overview) return;
    const scale = Number(overview.dataset.scale);
    this.disc = drawing("circle", { class: `runner c${data.tints[plan]}`, r: Math.max(0.2 * scale, 6 * Number(overview.closest(".mapbox").style.getPropertyValue("--pixel"))) });
    this.scale = scale;
  }
  draw() {
    if (this.step < 0) { if (this.disc) this.disc.remove(); return; }
    get("moment").textContent = (this.alone ? "" : `plan ${this.plan + 1}, `) + this.caption();
    if (!this.disc) return;
    const cell = this.run.at[this.step], aside = this.aside || 0;
    this.disc.setAttribute("cx", ((cell % world.columns) + 0.5 + aside) * this.scale);
    this.disc.setAttribute("cy", (Math.floor(cell / world.columns) + 0.5 + aside) * this.scale);
    if (!this.disc.isConnected) get("runners").append(this.disc);
  }
}
const runners = data.plans.map((_, plan) => new Runner(plan));
function clearRunners() {
  for (const [button] of [...playing]) if (button.closest("#plans")) stop(button);
  runners.forEach((runner) => { runner.step = -1; runner.draw(); });
  get("moment").textContent = "";
}
function play(button, plans) {
  if (playing.has(button)) { stop(button); return; }
  const fresh = plans.some((plan) => runners[plan].step < 0 || runners[plan].step >= runners[plan].run.at.length - 1);
  if (fresh) clearRunners();
  plans.forEach((plan, i) => { runners[plan].alone = plans.length === 1; runners[plan].aside = plans.length > 1 ? ((i + 0.5) / plans.length - 0.5) * 0.6 : 0; });
  start(button, plans.map((plan) => runners[plan]));
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
  if (button.dataset.do === "show") pin(pinned === plan ? null : plan);
  if (button.dataset.do === "play") { pin(plan); play(button, [plan]); }
  if (button.dataset.do === "take") takePlan(taken === plan ? null : plan);
  if (button.dataset.do === "compare") {
    const first = picked;
    pick(first === null ? plan : null);
    if (first !== null && first !== plan) showPair(first, plan);
    else say(first === null ? `Plan ${plan + 1} is picked. Press Compare on another plan.` : "No plan is picked.");
  }
});
if (get("play-all")) {
  get("play-all").addEventListener("click", () => play(get("play-all"), pinned === null ? data.tints.flatMap((tint, plan) => (tint ? [plan] : [])) : [pinned]));
  get("compare-two").addEventListener("click", () => { const one = pinned === null ? 0 : pinned; showPair(one, farthest(one)); });
}
if (get("print")) get("print").addEventListener("click", () => print());
// Of the plans of a group, only the first is printed with all that is known about it.
addEventListener("beforeprint", () => document.querySelectorAll("details:not(.group .more)").forEach((part) => { part.dataset.was = part.open; part.open = true; }));
addEventListener("afterprint", () => document.querySelectorAll("details[data-was]").forEach((part) => { part.open = part.dataset.was === "true"; }));

// ---- choosing a plan and taking it away, without a server ---------------------------------------

let taken = null;
function takePlan(plan) {
  taken = plan;
  for (const [i, card] of cards.entries()) {
    const own = i === plan, button = card.querySelector('[data-do="take"]');
    card.classList.toggle("chosen", own);
    button.setAttribute("aria-pressed", own);
    button.querySelector(".verb").textContent = own ? "Chosen" : "Choose";
    card.querySelector(".handed").hidden = !own;
    card.querySelector(".handed").replaceChildren(...(own ? handedOut(plan) : []));
  }
  try { history.replaceState(null, "", plan === null ? location.pathname + location.search : `#choice=${plan + 1}`); } catch { /* in a frame there is no address to change */ }
  if (plan !== null) pin(plan);
  say(plan === null ? "No plan is chosen." : `Plan ${plan + 1} is chosen.`);
}

function handedOut(plan) {
  const line = element("p", { className: "row" }), files = filesOf(plan);
  if (files.length) line.append("Take it with you: ", ...files.flatMap(([name, type, content]) => {
    const link = element("a", { download: `${data.file}-plan${plan + 1}${name}`, href: URL.createObjectURL(new Blob([content()], { type })), textContent: name.replace(/^-/, "").replace(/^\./, "policy.") });
    return [link, " "];
  }));
  const here = element("label", { textContent: "Link to this choice " });
  const address = element("input", { type: "text", readOnly: true, value: `${location.href.split("#")[0]}#choice=${plan + 1}` });
  address.addEventListener("focus", () => address.select());
  here.append(address);
  const command = element("p", { className: "hint" });
  const metric = (data.plans[plan].routes || []).some(([ending]) => ending.endsWith("yaml")), layer = metric ? " --layer time.pgm" : "";
  command.append("On the command line: ", element("code", { textContent: `manyways export ${get("plans").dataset.file} policy.json --plan ${plan + 1}${layer}` }));
  if (get("plans").dataset.unsaved) command.append(" (after saving the plans: ", element("code", { textContent: 'plans.save("plans.mw")' }), ")");
  return [...(files.length ? [line] : []), here, command];
}

// The files of a plan: the end of a name, the kind, and a function that makes the content.
function filesOf(plan) {
  const own = data.policies, files = (data.plans[plan].routes || []).map(([ending, type, text]) => [ending, type, () => text]);
  if (!own) return files;
  const rows = () => own.taken[plan].map((entry, state) => (typeof entry === "number" ? [own.states[state], own.actions[entry], 1] : [own.states[entry[0]], own.actions[entry[1]], entry[2]]));
  const quoted = (text) => `"${(own.cells[text] || text).replaceAll('"', '""')}"`;
  return [
    [".json", "application/json", () => `${JSON.stringify({ model: own.model, policy: rows().map(([state, action, probability]) => ({ state, action, probability })) }, null, 1)}\n`],
    [".csv", "text/csv", () => ["state,action,probability", ...rows().map(([state, action, probability]) => `${quoted(state)},${quoted(action)},"${probability}"`), ""].join("\n")],
    ...files,
  ];
}

function element(name, settings) { return Object.assign(document.createElement(name), settings); }

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
  showChange(one, other);
}

// What changing over from one plan to the other costs, in words and as a map.
function showChange(one, other) {
  const change = data.changes ? data.changes[one][other] : { text: "" };
  get("change").textContent = printed(change.text);
  if (!get("change-figure")) return;
  get("change-figure").hidden = !change.cost;
  if (!change.cost) return;
  const cost = bytes(change.cost);
  paint(get("change-map"), picture((cell) => (cost[cell] ? blend(ground(cell), colours.worse, 0.15 + (0.85 * cost[cell]) / 255) : ground(cell))));
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
    for (const stage of [left, right, ...runners]) if (stage.step >= 0) { stage.step = 0; stage.draw(); }
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
  let at = [0, 1];
  heat.addEventListener("keydown", (event) => {
    const by = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key], k = data.plans.length;
    if (event.key === "Enter" || event.key === " ") showPair(...at);
    else if (by) at = at.map((value, i) => Math.max(0, Math.min(k - 1, value + by[i])));
    else return;
    event.preventDefault();
    get("heat-text").textContent = `plans ${at[0] + 1} and ${at[1] + 1}: ${data.distances[at[0]][at[1]].toFixed(2)} (Enter compares them)`;
  });
}
if (get("distances")) get("distances").addEventListener("click", (event) => {
  const button = event.target.closest("[data-pair]");
  if (button) showPair(...button.dataset.pair.split(" ").map(Number));
});

// ---- closing something ------------------------------------------------------------------------

// Close one of the things that may be closed, or open it again (null): cross it out on the map, and the plans that fail.
let closed = null;
function close(which) {
  if (which !== null) { clearRunners(); if (playing.has(get("play"))) stop(get("play")); }
  closed = which;
  mayPlay();
  const own = which === null ? null : data.closures[which];
  document.querySelectorAll("[data-close]").forEach((part) => part.setAttribute("aria-pressed", Number(part.dataset.close) === which));
  document.querySelectorAll(".hero [data-of], table.closing [data-of]").forEach((part) => part.classList.toggle("shut", own !== null && own.lost.includes(Number(part.dataset.of))));
  cards.forEach((card, i) => card.classList.toggle("shut", own !== null && own.lost.includes(i)));
  get("closed-text").textContent = own ? printed(own.sentence) : "";
  if (overview) {
    get("moment").textContent = own ? printed(own.sentence) : "";
    overview.querySelectorAll(".closable").forEach((door) => door.classList.toggle("on", Number(door.dataset.close) === which));
  }
}
// Runs were drawn with nothing closed, so nothing is played while something is.
function mayPlay() {
  const why = closed === null ? "" : `These runs are without the closure: open ${data.closures[closed].name} again to play them.`;
  for (const button of document.querySelectorAll('#play, #play-all, #again-from-start, [data-do="play"]')) {
    button.disabled = why !== "";
    button.title = why;
  }
}
function toggleClosed(which) { close(closed === which ? null : which); }

if (data.closures) {
  get("closing").addEventListener("click", (event) => {
    const button = event.target.closest("[data-close]");
    if (button) toggleClosed(Number(button.dataset.close));
  });
  if (overview) data.closures.forEach((own, which) => {
    if (!own.cells.length) return;
    const scale = Number(overview.dataset.scale), door = drawing("g", { class: "closable", "data-close": which, role: "button", tabindex: 0, "aria-pressed": false, "aria-label": `Close ${own.name}` });
    const title = drawing("title", {});
    title.textContent = `Close ${own.name}`;
    door.append(title);
    for (const cell of own.cells) {
      const x = (cell % world.columns) * scale, y = Math.floor(cell / world.columns) * scale, rim = 0.12 * scale;
      door.append(drawing("rect", { x: x + rim / 2, y: y + rim / 2, width: scale - rim, height: scale - rim, rx: rim }));
      door.append(drawing("path", { d: `M${x + 2 * rim} ${y + 2 * rim}l${scale - 4 * rim} ${scale - 4 * rim}m0 ${4 * rim - scale}l${4 * rim - scale} ${scale - 4 * rim}`, "stroke-width": 0.14 * scale }));
    }
    door.addEventListener("click", () => toggleClosed(which));
    door.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggleClosed(which); } });
    get("closed").append(door);
    overview.setAttribute("role", "group");  // a picture must not contain buttons
  });
}

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
  if (shown !== null) { const plan = shown; shown = null; show(plan); }
  if (left) {
    left.redraw();
    right.redraw();
    showDifference(data.plans[left.plan], data.plans[right.plan]);
    showChange(left.plan, right.plan);
  }
}
readColours();
paintSuits();
if (heat) paintHeat();
if (left) compare(0, farthest(0));
const choice = /^#choice=(\d+)$/.exec(location.hash);
if (choice && cards[choice[1] - 1] && cards[0].querySelector('[data-do="take"]')) takePlan(Number(choice[1]) - 1);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
let resizing = 0;
addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(redrawAll); });
