// Requests to the program behind the live pages, and what to say when one fails.

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
