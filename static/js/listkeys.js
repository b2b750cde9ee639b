// The job list by keys: j and k move, x selects, Enter opens (it is the row's own link that has the focus), Escape lets go.
// Nothing happens while somebody types or a modifier is held. And what is selected: the bar below says how many.
import { fill, numberWords } from "./words.js";

const rows = () => [...document.querySelectorAll("#results tr[data-uid], #results .groups tbody tr")];
const link = (row) => row.querySelector("a.name");

/** The row that has the focus, wherever in it that is. */
function current() {
  return document.activeElement?.closest("#results tbody tr");
}

function move(step) {
  const all = rows();
  const at = all.indexOf(current());
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))];
  if (!next) return;
  link(next)?.focus();
  next.scrollIntoView({ block: "nearest" });
}

function pick(row, wanted) {
  const box = row?.querySelector("[data-pick]");
  if (!box || box.disabled) return;
  box.checked = wanted ?? !box.checked;
  row.setAttribute("aria-selected", String(box.checked));
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  x: () => pick(current()),
  Escape: () => rows().forEach((row) => pick(row, false)),
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
  const act = KEYS[event.key];
  if (!act || isTyping || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape" && !document.querySelector("[data-pick]:checked")) return;
  event.preventDefault();
  act();
  tell();
});

/** How many are selected, and whether the bar is for these or for all that match. */
function tell() {
  const count = document.querySelectorAll("[data-pick]:checked").length;
  const place = document.querySelector("[data-picked]");
  if (!place) return;
  place.textContent = count ? fill(place.dataset.one, { n: numberWords(count) }) : "";
  document.querySelector("[data-bulk]").classList.toggle("on", count > 0);
  const all = document.querySelector("[data-pick-all]");
  const boxes = document.querySelectorAll("[data-pick]:not(:disabled)").length;
  all.checked = count > 0 && count === boxes;
  all.indeterminate = count > 0 && count < boxes;
}

// Boxes of rows and of other forms stand inside the filter's form: their changes are none of its business.
document.addEventListener(
  "change",
  (event) => {
    if (!event.target.matches("[data-pick], [data-pick-all], [data-own]")) return;
    event.stopPropagation();
    if (event.target.matches("[data-pick]")) pick(event.target.closest("tr"), event.target.checked);
    if (event.target.matches("[data-pick-all]")) rows().forEach((row) => pick(row, event.target.checked));
    tell();
  },
  true,
);

// A list that comes anew keeps what was selected and what had the focus, as far as it is still there.
let kept = null;
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target?.id !== "results") return;
  kept = {
    picked: new Set([...document.querySelectorAll("[data-pick]:checked")].map((box) => box.value)),
    focus: current()?.dataset.uid,
  };
});
document.addEventListener("htmx:afterSettle", () => {
  if (!kept) return;
  for (const row of rows()) {
    if (kept.picked.has(row.dataset.uid)) pick(row, true);
    if (kept.focus && row.dataset.uid === kept.focus) link(row).focus();
  }
  kept = null;
  tell();
});

document.querySelectorAll("[data-pick]:checked").forEach((box) => pick(box.closest("tr"), true));
tell();
