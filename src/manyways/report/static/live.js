// The live page: plan again, keep, name, star, note, choose. What others do meanwhile is fetched and shown.

const shownSet = Number(document.body.dataset.set);
let lastEvent = Number(document.body.dataset.event);
let myJob = null, busy = false, quiet = 0;

async function ask(path, body) {
  const request = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, request);
  } catch {
    throw new Error("The program behind this page does not answer. Is it still running?");
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(content.error || `The answer was ${answer.status}.`);
  return content;
}

function trouble(text) {
  get("trouble").hidden = !text;
  get("trouble").textContent = text || "";
}
const trying = (work) => async (...given) => {
  try {
    trouble("");
    await work(...given);
  } catch (error) {
    trouble(error.message);
  }
};

// ---- what people said about the plans ---------------------------------------------------------

function showMarks(marks) {
  for (const card of cards) {
    const key = card.dataset.key, mark = marks[key] || { name: "", star: false, chosen: false, notes: [] };
    const title = card.querySelector(".title");
    title.textContent = mark.name || title.dataset.own;
    document.querySelectorAll(`[data-title="${key}"]`).forEach((other) => { other.textContent = title.textContent; });
    for (const id of ["left", "right"]) if (get(id)) get(id).options[Number(card.dataset.plan)].textContent = `${Number(card.dataset.plan) + 1} · ${title.textContent}`;
    card.querySelector('[data-do="star"]').setAttribute("aria-pressed", mark.star);
    const choose = card.querySelector('[data-do="choose"]');
    choose.setAttribute("aria-pressed", mark.chosen);
    choose.querySelector(".verb").textContent = mark.chosen ? "Chosen" : "Choose";
    card.classList.toggle("chosen", mark.chosen);
    const name = card.querySelector('[data-form="name"] input');
    if (document.activeElement !== name) name.value = mark.name;
    card.querySelector("[data-notes]").replaceChildren(...mark.notes.map(noteLine));
  }
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

async function markPlan(card, kind, value) {
  const answer = await ask("mark", { plan: card.dataset.key, kind, value, author: get("author").value.trim() });
  lastEvent = answer.last_event;
  showMarks(answer.marks);
}

get("plans").addEventListener("click", trying(async (event) => {
  const button = event.target.closest("button[data-do]");
  if (!button) return;
  const card = button.closest(".card"), pressed = button.getAttribute("aria-pressed") === "true";
  if (button.dataset.do === "star") await markPlan(card, "star", !pressed);
  if (button.dataset.do === "choose") {
    await markPlan(card, "choose", !pressed);
    say(pressed ? "No plan is chosen." : `Plan ${Number(card.dataset.plan) + 1} is chosen.`);
  }
  if (button.dataset.do === "forget") await markPlan(card, "remove-note", Number(button.closest("li").dataset.note));
}));

get("plans").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target, field = form.elements.value;
  trying(async () => {
    await markPlan(form.closest(".card"), form.dataset.form, field.value.trim());
    if (form.dataset.form === "note") field.value = "";
    say("Saved.");
  })();
});

// ---- planning again ---------------------------------------------------------------------------

const kept = () => cards.filter((card) => card.querySelector('[data-do="keep"]').checked).map((card) => card.dataset.key);

function nameTheButton() {
  const count = kept().length;
  get("replan").textContent = count ? `Keep ${count}, replace the others` : "Plan again";
}
get("plans").addEventListener("change", nameTheButton);

get("again").addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = get("again").elements;
  trying(async () => {
    const answer = await ask("plan", {
      k: Number(fields.k.value), tradeoff: Number(fields.tradeoff.value), seed: Number(fields.seed.value), keep: kept(), set: shownSet,
    });
    myJob = answer.job;
    showProgress({ doing: "planning", done: 0, total: 0 });
    look();
  })();
});
get("cancel").addEventListener("click", trying(() => ask("cancel", {})));
get("refresh").addEventListener("click", () => location.reload());
if (get("sets")) get("sets").addEventListener("change", trying(async () => {
  await ask("show", { set: Number(get("sets").value) });
  location.reload();
}));

function showProgress(job) {
  busy = Boolean(job);
  get("progress").hidden = !job;
  get("cancel").hidden = !job;
  get("replan").disabled = busy;
  if (!job) return;
  const bar = get("progress").querySelector("progress");
  if (job.total) bar.value = job.done / job.total; else bar.removeAttribute("value");
  const value = typeof job.objective === "number" ? `, objective ${job.objective.toPrecision(5)}` : "";
  get("progress-text").textContent = `${job.doing}${job.total ? ` ${Math.round((100 * job.done) / job.total)} %` : ""}${value}`;
}

function settle(finished) {
  if (myJob === null || !finished || finished.id !== myJob) return;
  myJob = null;
  if (finished.ok) location.reload();
  else trouble(finished.message);
}

// ---- looking after what happened --------------------------------------------------------------

let timer = 0;
async function look() {
  clearTimeout(timer);
  try {
    const state = await ask(`state?since=${lastEvent}`);
    quiet = 0;
    if (get("trouble").dataset.lost) { trouble(""); delete get("trouble").dataset.lost; }
    if (state.last_event > lastEvent && state.marks) showMarks(state.marks);
    lastEvent = state.last_event;
    showProgress(state.job);
    settle(state.finished);
    if (state.set !== shownSet && myJob === null) {
      get("news").hidden = false;
      get("news").querySelector("span").textContent = "Somebody planned again: there is another set of plans.";
    }
  } catch (error) {
    if (++quiet === 2) {
      trouble(error.message);
      get("trouble").dataset.lost = "yes";
    }
  }
  timer = setTimeout(look, busy ? 400 : 2500);
}
try { get("author").value = localStorage.getItem("manyways-author") || ""; } catch { /* storage may be off */ }
get("author").addEventListener("change", () => {
  try { localStorage.setItem("manyways-author", get("author").value.trim()); } catch { /* likewise */ }
});
nameTheButton();
look();
