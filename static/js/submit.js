// The submit page: keeps the form and the editor on one draft. The server merges the two sides and says what is wrong.
import "./dryrun.js";
import { editor, newLines } from "./editor.js";
import { fill } from "./words.js";

const form = document.getElementById("draft");
const area = document.getElementById("yaml");
const side = document.getElementById("side");
const file = document.getElementById("file");
const lines = document.querySelector("[data-lines]");
const busy = document.querySelector("[data-busy]");
const origin = area.value;
let sent = null;
let busyTimer = 0;

const yaml = editor(area, {
  onEdit() {
    side.value = "yaml";
    htmx.trigger(form, "draft");
    count();
  },
  onSubmit: send,
});

file.removeAttribute("name"); // read here; without script it is posted
file.closest(".sb-file").classList.add("scripted");
form.querySelector("[data-upload]").addEventListener("click", (event) => {
  event.preventDefault();
  file.click();
});
file.addEventListener("change", async (event) => {
  event.stopPropagation();
  const [chosen] = file.files;
  if (!chosen) return;
  const text = await chosen.slice(0, 1_048_577).text();
  file.value = "";
  yaml.replace(text);
  side.value = "yaml";
  htmx.trigger(form, "draft");
  count();
});

form.addEventListener("input", (event) => {
  if (!event.target.closest("#form-side")) return;
  side.value = event.target.name.endsWith(".gpu_kind") ? "both" : "form"; // another kind of GPU has other inputs
});
document.addEventListener("keydown", (event) => { // wherever the focus is, as after Clone; the editor has its own
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
  event.preventDefault();
  send();
});
form.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey) return;
  if (event.key === "Enter" && event.target.matches("#form-side input")) {
    event.preventDefault(); // Enter in a field is no submit: the job is not something to start by accident
  }
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-line]");
  if (!link) return;
  event.preventDefault();
  yaml.show(Number(link.dataset.line));
});

form.addEventListener("htmx:beforeRequest", () => {
  sent = yaml.text();
  busyTimer = setTimeout(() => { busy.hidden = false; }, 300);
});
form.addEventListener("htmx:afterRequest", () => {
  clearTimeout(busyTimer);
  busy.hidden = true;
});
for (const name of ["htmx:responseError", "htmx:sendError"]) form.addEventListener(name, unanswered);
document.addEventListener("htmx:afterSettle", settle);
let kept = null;
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  if (event.target.id !== "form-side") return;
  const open = [...event.target.querySelectorAll("details[open]")].map((each) => each.id);
  kept = { open, focus: event.target.contains(document.activeElement) ? document.activeElement.id : "" };
});
document.addEventListener("htmx:oobAfterSwap", (event) => {
  if (event.target.id === "draft-state") settle();
  if (event.target.id !== "form-side" || !kept) return;
  for (const id of kept.open) document.getElementById(id)?.setAttribute("open", "");
  if (kept.focus) document.getElementById(kept.focus)?.focus();
  kept = null;
});

/** Submit the Job; a text of other things is applied instead. */
function send() {
  form.requestSubmit(form.querySelector(".sb-apply") ?? form.querySelector(".acts button"));
}

function unanswered() {
  const panel = document.getElementById("check");
  const note = document.createElement("div");
  note.className = "ba-note bad";
  note.textContent = panel.dataset.failed;
  panel.replaceChildren(note);
}

/** Take over what the server made of the draft. */
function settle() {
  const holder = document.getElementById("draft-state");
  if (holder.dataset.done) return;
  holder.dataset.done = "1";
  const state = JSON.parse(holder.dataset.state);
  if (sent !== null && yaml.text() !== sent) return; // typed on meanwhile: the next answer is on its way
  yaml.replace(state.yaml);
  yaml.faults(state.faults);
  for (const [id, { errors, hints, changed }] of Object.entries(state.inputs)) mark(id, errors, hints, changed);
  count();
}

function mark(id, errors, hints, changed) {
  const input = document.getElementById(id);
  const hint = document.getElementById(`e-${id}`);
  if (!input) return;
  input.classList.toggle("bad", errors.length > 0);
  input.classList.toggle("chgin", changed);
  if (errors.length) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
  if (!hint) return;
  hint.hidden = errors.length + hints.length === 0;
  const line = (text, className) => Object.assign(document.createElement("span"), { textContent: text, className });
  hint.replaceChildren(...errors.map((text) => line(text, "")), ...hints.map(([text, kind]) => line(text, kind)));
}

function count() {
  const text = yaml.text();
  const changed = newLines(origin, text);
  yaml.changed(changed);
  const form_ = changed.length ? area.dataset.changedForm : area.dataset.linesForm;
  lines.textContent = fill(form_, { lines: text.replace(/\n$/, "").split("\n").length, changed: changed.length });
}

settle();
