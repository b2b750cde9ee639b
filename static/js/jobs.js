// The job list, live: rows that are shown change in place; new jobs gather behind a chip, so that nothing moves under the pointer.
import { present } from "./clock.js";
import { subscribe } from "./live.js";
import { patch } from "./patch.js";
import { fill, words } from "./words.js";

let fresh = new Set();
let uncounted = 0; // jobs that the server only counted, since very many changed at once
let since = present();

function shown() {
  return [...document.querySelectorAll("#results tr[data-uid]")].map((row) => row.dataset.uid);
}

/** Whether a row would be in this list, as far as the URL's filters say. */
function matches(row) {
  const asked = new URLSearchParams(location.search);
  const values = { state: row.mark, queue: row.queue, owner: row.owner, namespace: row.namespace, model: row.gpu_model };
  for (const [name, value] of Object.entries(values)) {
    if (asked.has(name) && !asked.getAll(name).includes(value)) return false;
  }
  if (asked.get("group") || asked.get("ended") || !hasLabels(row.labels ?? {}, asked.getAll("label").join(","))) return false;
  if (asked.has("stage") && !asked.getAll("stage").includes(row.verdict?.stage)) return false;
  const text = [row.name, row.owner, row.queue, row.namespace].join("\n").toLowerCase();
  return (asked.get("q") ?? "").toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** Whether labels fulfil plain conditions (`key=value`, `key`, `!key`); of others only the server knows. */
function hasLabels(labels, selector) {
  return selector.split(",").filter(Boolean).every((part) => {
    const [, not, key, , value] = part.trim().match(/^(!?)([^=!<>\s()]+)\s*(==?\s*([^=!<>\s()]*))?$/) ?? [];
    if (!key) return false;
    return not ? !(key in labels) : value === undefined ? key in labels : labels[key] === value;
  });
}

function receive(message) {
  const here = new Set(shown());
  for (const row of message.changed ?? []) {
    if (here.has(row.uid)) patch(document.querySelector(`#results tr[data-uid="${CSS.escape(row.uid)}"]`), row);
    else if (Date.parse(row.created_at) > since && matches(row)) fresh.add(row.uid);
  }
  for (const uid of message.gone ?? []) {
    fresh.delete(uid);
    document.querySelector(`#results tr[data-uid="${CSS.escape(uid)}"]`)?.classList.add("gone");
  }
  uncounted = Math.max(uncounted, message.more ?? 0);
  const chip = document.querySelector("[data-new]");
  if (chip) {
    chip.hidden = fresh.size + uncounted === 0;
    chip.textContent = uncounted ? words.manyNew : fill(words.new, { count: fresh.size });
  }
}

const subscription = subscribe("jobs", { uids: shown, onMessage: receive });

document.addEventListener("htmx:afterSettle", () => {
  fresh = new Set();
  uncounted = 0;
  since = present();
  subscription.refresh();
  document.querySelectorAll("a[data-export]").forEach((link) => (link.search = location.search));
  document.querySelectorAll("input[data-query]").forEach((input) => (input.value = location.search.slice(1)));
});

// When the session has ended, the answer is the sign-in page: go there as a whole.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.responseURL && new URL(event.detail.xhr.responseURL).pathname !== location.pathname) {
    event.detail.shouldSwap = false;
    location.reload();
  }
});

// Empty fields would only make the address longer.
document.addEventListener("htmx:configRequest", (event) => {
  const parameters = event.detail.parameters;
  for (const [key, value] of [...parameters.entries?.() ?? Object.entries(parameters)]) {
    if (value === "") delete parameters[key];
  }
});

