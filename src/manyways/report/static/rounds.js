// Choosing by rounds: take a plan, go back, stop, start again. Needs maps.js and requests.js.

const standing = document.body.dataset;
const asked = Number(standing.asked);
let myJob = null; // the job that was started on this page: its number and its server
let timer = 0, failures = 0;

// ---- maps -------------------------------------------------------------------------------------

const learned = data.learned && { ...data.learned, mean: floats(data.learned.mean), spread: floats(data.learned.spread) };

function drawAll() {
  readColours();
  if (!drawn) return;
  document.querySelectorAll("#question canvas.map").forEach((canvas, i) => paint(canvas, timePicture(data.plans[i])));
  if (learned) paint(get("learned-map"), preferencePicture(learned.mean, learned.full));
}

if (learned) get("learned-map").addEventListener("pointermove", (event) => {
  const box = get("learned-map").getBoundingClientRect();
  const column = Math.floor(((event.clientX - box.left) / box.width) * world.columns);
  const row = Math.floor(((event.clientY - box.top) / box.height) * world.rows);
  if (column < 0 || row < 0 || column >= world.columns || row >= world.rows) return;
  const cell = row * world.columns + column, mean = learned.mean[cell];
  const number = (value) => printed(value.toPrecision(2));
  const words = Number.isNaN(mean) ? "no state" : `${mean > 0 ? "+" : ""}${number(mean)} ± ${number(learned.spread[cell])}`;
  get("learned-pointed").textContent = `row ${row * world.block}, column ${column * world.block}: ${words}`;
});

// ---- requests ---------------------------------------------------------------------------------

const author = () => {
  try { return localStorage.getItem("manyways-author") || ""; } catch { return ""; } // storage may be disabled
};
const leave = (address) => { history.scrollRestoration = "manual"; if (address) location.assign(address); else location.reload(); };

function showProgress(job) {
  get("progress").hidden = !job;
  document.querySelectorAll("[data-take], #stop, #back, #start button").forEach((button) => { button.disabled = Boolean(job); });
  if (!job) return;
  const bar = get("progress").querySelector("progress");
  if (job.total && job.objective !== null) bar.value = job.done / job.total; else bar.removeAttribute("value");
  get("progress-text").textContent = `Finding the next plans: ${job.doing}`;
}

async function begin(path, body) {
  const answer = await ask(path, body);
  myJob = { id: answer.job, server: answer.server };
  showProgress({ doing: "starting", done: 0, total: 0, objective: null });
  poll();
}

if (get("question")) get("question").addEventListener("click", trying(async (event) => {
  const button = event.target.closest("[data-take]");
  if (!button) return;
  document.querySelectorAll(".card").forEach((card) => card.classList.toggle("picked", card.contains(button)));
  say("Finding the next plans.");
  try {
    await begin("rounds/answer", { set: asked, plan: Number(button.dataset.take) });
  } catch (error) {
    button.closest(".card").classList.remove("picked");
    throw error;
  }
}));
get("start").addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = get("start").elements;
  trying(() => begin("rounds/start", {
    set: Number(standing.current), k: Number(fields.k.value), slack: Number(fields.slack.value) / 100, seed: Number(fields.seed.value),
  }))();
});
if (get("back")) get("back").addEventListener("click", trying(async () => {
  await ask("rounds/back", { set: asked });
  leave();
}));
if (get("stop")) get("stop").addEventListener("click", trying(async () => {
  const chosen = await ask("rounds/stop", { set: asked, author: author() });
  leave(`./#plan-${chosen.plan}`);
}));
get("cancel").addEventListener("click", trying(() => ask("cancel", {})));
get("refresh").addEventListener("click", () => leave());

// Handle the end of the job that was started on this page. Returns whether the browser is leaving the page.
function settle(state) {
  const mine = (job) => myJob && job && job.id === myJob.id && state.server === myJob.server;
  if (!myJob || mine(state.job)) return false;
  if (mine(state.finished) && state.finished.ok) {
    leave();
    return true;
  }
  trouble(mine(state.finished) ? state.finished.message : "Planning was interrupted.");
  document.querySelectorAll(".card.picked").forEach((card) => card.classList.remove("picked"));
  myJob = null;
  return false;
}

async function poll() {
  clearTimeout(timer);
  try {
    const state = await ask("state?since=999999999999");
    failures = 0;
    if (get("trouble").dataset.lost) { trouble(""); delete get("trouble").dataset.lost; }
    if (settle(state)) return;
    showProgress(state.job);
    if (!myJob && state.rounds !== Number(standing.event)) {
      get("news").hidden = false;
      get("news").querySelector("span").textContent = "Somebody has answered or started again.";
    }
  } catch (error) {
    if (++failures === 2) {
      trouble(error.message);
      get("trouble").dataset.lost = "yes";
    }
  }
  timer = setTimeout(poll, myJob ? 100 : 2500);
}

drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
let resizing = 0;
addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(drawAll); });
poll();
