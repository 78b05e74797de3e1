// The live page: plan again; keep, name, star and choose plans; write notes. Changes made by others are fetched and shown.

const shownSet = Number(document.body.dataset.set);
let newestSet = Number(document.body.dataset.newest);
let lastEvent = Number(document.body.dataset.event);
let myJob = null; // the job that was started on this page: its number and its server
let busy = false, failures = 0;

// ---- names, stars, notes and choices ----------------------------------------------------------

function showMarks(marks) {
  for (const card of cards) {
    const key = card.dataset.key, mark = marks[key] || { name: "", star: false, chosen: false, notes: [] };
    const title = card.querySelector(".title"), plan = Number(card.dataset.plan);
    title.textContent = mark.name || title.dataset.own;
    document.querySelectorAll(`[data-title="${key}"]`).forEach((other) => { other.textContent = title.textContent; });
    for (const id of ["left", "right"]) if (get(id)) get(id).options[plan].textContent = `${plan + 1} · ${title.textContent}`;
    card.querySelector('[data-do="star"]').setAttribute("aria-pressed", mark.star);
    const choose = card.querySelector('[data-do="choose"]');
    choose.setAttribute("aria-pressed", mark.chosen);
    choose.querySelector(".verb").textContent = mark.chosen ? "Chosen" : "Choose";
    card.classList.toggle("chosen", mark.chosen);
    showName(card.querySelector('[data-form="name"] input'), mark.name);
    showNotes(card.querySelector("[data-notes]"), mark.notes);
  }
  if (left) nameSides();
}

function showName(field, name) {
  if (field.value === field.defaultValue) field.value = name; // do not overwrite what is being typed
  field.defaultValue = name;
}

function showNotes(list, notes) {
  const known = new Map([...list.children].map((line) => [Number(line.dataset.note), line]));
  for (const [id, line] of known) if (!notes.some((note) => note.id === id)) line.remove();
  for (const note of notes) if (!known.has(note.id)) list.append(noteLine(note));
}

function noteLine(note) {
  const line = item("");
  line.dataset.note = note.id;
  const text = Object.assign(document.createElement("span"), { className: "text", textContent: note.text });
  const button = Object.assign(document.createElement("button"), { type: "button", className: "small", textContent: "×" });
  button.dataset.do = "forget";
  button.setAttribute("aria-label", "Remove this note");
  line.append(text, " ");
  if (note.author) line.append(Object.assign(document.createElement("span"), { className: "author", textContent: note.author }), " ");
  line.append(button);
  return line;
}

function showChosen(chosen) {
  const line = get("chosen-line");
  line.textContent = chosen ? "Chosen: " : "No plan is chosen yet.";
  if (!chosen) return;
  const link = document.createElement("a");
  link.href = `${chosen.set === shownSet ? "" : `?set=${chosen.set}`}#plan-${chosen.plan}`;
  link.textContent = `plan ${chosen.plan} of set ${chosen.set}`;
  const name = document.createElement("bdi");
  name.textContent = chosen.name;
  line.append(link, ...(chosen.name ? [" (", name, ")"] : []));
}

function take(answer) {
  if (answer.last_event < lastEvent) return; // a newer answer arrived before this one
  lastEvent = answer.last_event;
  if (answer.marks) showMarks(answer.marks);
  if (answer.chosen !== undefined) showChosen(answer.chosen);
}

async function markPlan(card, kind, value) {
  take(await ask("mark", { plan: card.dataset.key, kind, value, author: get("author").value.trim() }));
}

get("plans").addEventListener("click", trying(async (event) => {
  const button = event.target.closest("button[data-do]");
  if (!button) return;
  const card = button.closest(".card"), pressed = button.getAttribute("aria-pressed") === "true";
  if (button.dataset.do === "star") await markPlan(card, "star", !pressed);
  if (button.dataset.do === "choose") {
    await markPlan(card, "choose", !pressed && shownSet);
    say(pressed ? "No plan is chosen." : `Plan ${Number(card.dataset.plan) + 1} is chosen.`);
  }
  if (button.dataset.do === "more") await replan({ like: card.dataset.key });
  if (button.dataset.do === "less") await replan({ keep: cards.filter((other) => other !== card).map((other) => other.dataset.key), k: cards.length });
  if (button.dataset.do === "forget") await markPlan(card, "remove-note", Number(button.closest("li").dataset.note));
}));

get("plans").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target, field = form.elements.value;
  trying(async () => {
    await markPlan(form.closest(".card"), form.dataset.form, field.value.trim());
    field.value = form.dataset.form === "note" ? "" : field.defaultValue;
    say("Saved.");
  })();
});

const unsaved = () => [...document.querySelectorAll(".opinions textarea, .opinions input[type=text]")].some((field) => field.value !== field.defaultValue);

// ---- planning again ---------------------------------------------------------------------------

const kept = () => cards.filter((card) => card.querySelector('[data-do="keep"]').checked).map((card) => card.dataset.key);

function showWorkbench() {
  const count = kept().length;
  get("replan").textContent = count === 0 ? "Plan again" : count === cards.length ? `Keep all ${count}, add others` : `Keep ${count}, replace the others`;
  get("replan").disabled = busy;
  get("workbench").classList.toggle("floating", busy || count > 0);
}
get("plans").addEventListener("change", showWorkbench);

const banned = (name) => [...document.querySelectorAll(`#again [name=${name}]:checked`)].map((box) => box.value);

// Plan with the settings of the form, except for those given.
async function replan(changes) {
  const fields = get("again").elements;
  const answer = await ask("plan", {
    k: Number(fields.k.value),
    tradeoff: fields.tradeoff ? Number(fields.tradeoff.value) : null, // some objectives have no tradeoff
    slack: fields.slack && fields.slack.value !== "" ? Number(fields.slack.value) / 100 : null, // empty: no such limit
    seed: Number(fields.seed.value),
    keep: kept(),
    set: shownSet,
    behaviour: fields.behaviour ? fields.behaviour.value : "",
    per: fields.per ? fields.per.value : "",
    banned_labels: banned("banned_labels"),
    banned_actions: banned("banned_actions"),
    ...changes,
  });
  myJob = { id: answer.job, server: answer.server };
  showProgress({ doing: "planning", done: 0, total: 0 });
  poll();
}
get("again").addEventListener("submit", (event) => {
  event.preventDefault();
  trying(() => replan({}))();
});
get("cancel").addEventListener("click", trying(() => ask("cancel", {})));
get("refresh").addEventListener("click", () => location.assign("./"));
if (get("sets")) get("sets").addEventListener("change", () => location.assign(`?set=${get("sets").value}`));

function showProgress(job) {
  busy = Boolean(job);
  get("progress").hidden = !job;
  get("cancel").hidden = !job;
  showWorkbench();
  if (!job) return;
  const bar = get("progress").querySelector("progress");
  if (job.total) bar.value = job.done / job.total; else bar.removeAttribute("value");
  get("progress-text").textContent = `${job.doing}${job.total ? `, ${Math.round((100 * job.done) / job.total)} %` : ""}`;
}

function showNews(text) {
  get("news").hidden = false;
  get("news").querySelector("span").textContent = text;
}

// Handle the end of the job that was started on this page. Returns whether the browser is leaving the page.
function settle(state) {
  if (myJob === null) return false;
  const mine = (job) => job && job.id === myJob.id && state.server === myJob.server;
  if (mine(state.job)) return false;
  const { finished } = state, own = mine(finished);
  myJob = null;
  if (!own && state.set !== newestSet) showNews("There is a new set of plans.");
  else if (!own) trouble("Planning was interrupted.");
  else if (!finished.ok) trouble(finished.message);
  else if (unsaved()) showNews("The new plans are ready. Your text is not saved yet.");
  else {
    location.assign("./");
    return true;
  }
  newestSet = state.set;
  return false;
}

// ---- polling the server -----------------------------------------------------------------------

let timer = 0;
async function poll() {
  clearTimeout(timer);
  try {
    const state = await ask(`state?since=${lastEvent}`);
    failures = 0;
    if (get("trouble").dataset.lost) { trouble(""); delete get("trouble").dataset.lost; }
    take(state);
    showProgress(state.job);
    if (settle(state)) return;
    if (state.set !== newestSet && myJob === null) {
      newestSet = state.set;
      showNews("Somebody planned again: there is a new set of plans.");
    }
  } catch (error) {
    if (++failures === 2) {
      trouble(error.message);
      get("trouble").dataset.lost = "yes";
    }
  }
  timer = setTimeout(poll, busy ? 400 : 2500);
}
try { get("author").value = localStorage.getItem("manyways-author") || ""; } catch { /* storage may be disabled */ }
get("author").addEventListener("change", () => {
  try { localStorage.setItem("manyways-author", get("author").value.trim()); } catch { /* storage may be disabled */ }
});
showWorkbench();
poll();
