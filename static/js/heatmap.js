// The page of GPUs: colouring, legend, card, keys, the node at the side, and live changes. The address says what is shown.
import { drawCard } from "./fleetcard.js";
import { isInUse, isWhole, nodesOf } from "./fleetdata.js";
import { drawLegend, onlyFilter } from "./fleetlegend.js";
import { follow } from "./fleetlive.js";
import { Look, MEASURES } from "./fleetlook.js";
import { FleetMap } from "./fleetmap.js";
import { subscribe } from "./live.js";
import { isChanged, isNew } from "./news.js";
import { fill, language, numberWords, shortModel } from "./words.js";

const byId = (id) => document.getElementById(id);
const [host, card, say, legend, panel, columns, find, shown] = ["hm", "hm-card", "hm-say", "hm-legend", "hm-panel", "hm-cols", "hm-find", "hm-shown"].map(byId);
const text = JSON.parse(byId("hm-words").textContent);
const query = () => new URL(location.href).searchParams;
const model = query().get("model") ?? "";
const nodes = nodesOf(JSON.parse(byId("hm-data").textContent), model);
const look = new Look(nodes, host.dataset.mode);
look.selected = host.dataset.selected;
let only = query().get(look.mode === "state" ? "state" : "only");
let job = query().get("job") ?? "";
let pinned = false;

const words = {
  spine(spine) {
    const free = spine.nodes.reduce((sum, node) => sum + freeOf(node), 0);
    const total = spine.nodes.reduce((sum, node) => sum + node.cells.length, 0);
    const whole = spine.nodes.filter(isWhole).length;
    const models = [...new Set(spine.nodes.map((node) => shortModel(node.model)))].join(" · ");
    const parts = [fill(text.spineFree, { free: numberWords(free), total: numberWords(total) }), whole ? fill(text.whole, { count: numberWords(whole) }) : text.noWhole];
    return { name: `${spine.name || text.noSpine}  ${models}`, detail: parts.join(" · ") };
  },
  rack(rack) {
    const free = rack.nodes.reduce((sum, node) => sum + freeOf(node), 0);
    const title = rack.name ? (/rack/i.test(rack.name) ? rack.name : fill(text.rack, { name: rack.name })) : rack.first ? text.noRack : "";
    return { title, free: free ? fill(text.free, { count: free }) : text.full };
  },
  node: (node) => (node.ready ? (node.draining ? text.draining : node.cordoned ? text.cordoned : "") : node.cells.some((cell) => cell.state === "unknown") ? text.unknown : text.notReady),
};
const freeOf = (node) => node.cells.reduce((sum, cell) => sum + (cell.state === "free"), 0);

const holdersOf = (cell) => (cell.parts ? cell.parts.map((part) => part.holder) : cell.holder ? [cell.holder] : []);
const hasText = (node, cell, needle) => node.name.toLowerCase().includes(needle) || holdersOf(cell).some(({ uid, job: name, queue, user }) => uid === needle || [name, queue, user].some((part) => part.toLowerCase().includes(needle)));

narrow();
const map = new FleetMap(host, nodes, look, words);
for (const button of document.querySelectorAll("#hm-modes [data-mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === look.mode));
drawLegend(legend, look, only, text);

/* ---- what is shown ---- */
byId("hm-modes").addEventListener("click", (event) => {
  const button = event.target.closest("[data-mode]");
  if (button) setMode(button.dataset.mode);
});
legend.addEventListener("click", (event) => {
  const key = event.target.closest("[data-key]")?.dataset.key;
  if (key === undefined) return;
  only = only === key ? null : key;
  address({ state: look.mode === "state" ? only : null, only: look.mode === "state" ? null : only });
  show();
});
find.addEventListener("input", () => {
  address({ q: find.value.trim() || null });
  show();
});
byId("hm-zoom").addEventListener("click", (event) => {
  const by = Number(event.target.closest("[data-zoom]")?.dataset.zoom ?? 0);
  if (by) zoom(by);
});
addEventListener("ba:theme", () => map.redraw());

function setMode(mode) {
  only = null;
  look.setMode(mode);
  for (const button of document.querySelectorAll("#hm-modes [data-mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
  address({ by: mode === "state" ? null : mode, state: null, only: null });
  show();
}

function show() {
  narrow();
  map.redraw();
  drawLegend(legend, look, only, text);
}

/** Which cells stay bright: those of the legend's pressed entry, of the selected job, with the text in a name. */
function narrow() {
  const needle = find.value.trim().toLowerCase();
  const filters = [onlyFilter(look, only), job ? (node, cell) => holdersOf(cell).some((holder) => holder.uid === job) : null, needle ? (node, cell) => hasText(node, cell, needle) : null].filter(Boolean);
  look.filter = filters.length ? (node, cell) => filters.every((takes) => takes(node, cell)) : null;
  summary();
}

/** How many GPUs stay bright, or the selected job's. */
function summary() {
  shown.hidden = !look.filter;
  if (!look.filter) return;
  let [count, total, places, name] = [0, 0, 0, ""];
  for (const node of nodes) {
    const mine = node.cells.filter((cell) => look.filter(node, cell));
    total += node.cells.length;
    count += mine.length;
    places += mine.length > 0;
    if (job && !name) name = mine.flatMap(holdersOf).find((holder) => holder.uid === job)?.job ?? "";
  }
  const words_ = count === 0 ? text.none : job && name ? fill(text.ofJob, { job: name, gpus: numberWords(count), nodes: numberWords(places) }) : fill(text.shown, { count: numberWords(count), total: numberWords(total) });
  shown.querySelector("span").textContent = words_;
}

shown.querySelector("button").addEventListener("click", clear);

function clear() {
  [only, job, find.value] = [null, "", ""];
  address({ state: null, only: null, q: null, job: null });
  show();
}

function zoom(by) {
  map.zoom(by);
  place();
}

function address(changes) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  history.replaceState(history.state, "", url);
}

/* ---- pointer ---- */
const hitOf = (event) => (event.target.band ? map.at(event.target.band, event.offsetX, event.offsetY) : null);
host.addEventListener("pointermove", (event) => pinned || pick(hitOf(event), true));
host.addEventListener("pointerleave", () => pinned || pick(null));
host.addEventListener("click", (event) => {
  const hit = hitOf(event);
  if (!hit) return pick(null);
  pick(hit, true);
  pin(hit.gpu >= 0);
  select(hit);
});
host.addEventListener("dblclick", (event) => {
  const hit = hitOf(event);
  if (hit) open(hit);
});

/* ---- keys ---- */
const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
host.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !nodes.length) return;
  const here = map.picked ?? { node: nodes.find((node) => node.name === look.selected) ?? nodes[0], gpu: 0 };
  if (STEPS[event.key]) pick(map.picked ? map.step(here, ...STEPS[event.key]) : here);
  else if (event.key === "Home") pick({ node: here.node, gpu: 0 });
  else if (event.key === "End") pick({ node: here.node, gpu: here.node.cells.length - 1 });
  else if (event.key === "PageDown" || event.key === "PageUp") pick(map.leap(here, event.key === "PageDown" ? 1 : -1));
  else if (event.key === "Enter") open(here);
  else if (event.key === " ") select(here);
  else if (event.key === "n" || event.key === "N") toNode(here.node);
  else if (event.key === "+" || event.key === "=") zoom(1);
  else if (event.key === "-") zoom(-1);
  else if (event.key === "Escape") leave();
  else return;
  event.preventDefault();
});
host.addEventListener("blur", (event) => card.contains(event.relatedTarget) || pinned || pick(null));
card.addEventListener("keydown", (event) => {
  if (event.key === "Escape") host.focus();
});

function leave() {
  if (map.picked) return pick(null);
  if (job) return clear();
  closePanel();
}

function pick(hit, isPointer = false) {
  const wanted = hit && hit.gpu >= 0 ? hit : null;
  host.style.cursor = hit ? "pointer" : "";
  if (wanted?.node === map.picked?.node && wanted?.gpu === map.picked?.gpu) return;
  pin(false);
  map.pick(wanted);
  showCard(isPointer);
}

/** A card that is pinned stays, so that its links can be reached. */
function pin(is) {
  pinned = is;
  card.classList.toggle("pinned", is);
}

function showCard(isQuiet) {
  card.hidden = !map.picked;
  if (!map.picked) return;
  const said = drawCard(card, map.picked, text, host.dataset.jobUrl);
  place();
  if (isQuiet) return;
  say.textContent = said;
  map.outlines.picked.scrollIntoView({ block: "nearest" });
}

/** Beside the GPU, inside the section. */
function place() {
  if (!map.picked) return;
  const box = map.box(map.picked);
  const room = host.offsetParent;
  const x = host.offsetLeft + box.x;
  const y = host.offsetTop + box.y;
  const right = x + box.w + 12;
  card.style.left = `${right + card.offsetWidth > room.clientWidth - 4 ? Math.max(4, x - card.offsetWidth - 12) : right}px`;
  const lowest = Math.min(room.clientHeight, innerHeight - room.getBoundingClientRect().top - (innerWidth < 760 ? 56 : 0));
  card.style.top = `${Math.max(4, Math.min(y + 16, lowest - card.offsetHeight - 4))}px`;
}

/* ---- to node and job ---- */
const toNode = (node) => location.assign(host.dataset.nodeUrl.replace("NODE", encodeURIComponent(node.name)));
const uidOf = (cell) => holdersOf(cell).find((holder) => holder.uid)?.uid ?? "";

function open({ node, gpu }) {
  const uid = gpu < 0 ? "" : uidOf(node.cells[gpu]);
  if (uid) location.assign(host.dataset.jobUrl.replace("UID", encodeURIComponent(uid)));
  else toNode(node);
}

/** Show the node at the side, and the GPU's job wherever it is; a second time, everything again. */
async function select({ node, gpu }) {
  const uid = gpu < 0 ? "" : uidOf(node.cells[gpu]);
  job = uid && uid === job && node.name === look.selected ? "" : uid;
  look.selected = node.name;
  address({ node: node.name, job: job || null });
  show();
  columns.classList.add("with-panel");
  panel.hidden = false;
  await loadPanel(node.name);
  followPanel(node.name);
  map.outline();
  panel.querySelector(`[data-gpu="${gpu}"]`)?.setAttribute("aria-selected", "true");
}

const loadPanel = (name) => htmx.ajax("GET", host.dataset.panelUrl.replace("NODE", encodeURIComponent(name)), { target: "#hm-panel", swap: "innerHTML" });

panel.addEventListener("click", (event) => {
  if (!event.target.closest("[data-close]")) return;
  event.preventDefault();
  closePanel();
  host.focus();
});

function closePanel() {
  if (panel.hidden) return;
  look.selected = "";
  followPanel("");
  panel.hidden = true;
  columns.classList.remove("with-panel");
  address({ node: "" }); // none, also after a reload
  map.outline();
}

/* ---- live ---- */
follow(nodes, {
  digest: model ? "" : host.dataset.digest,
  model,
  onCells(changes) {
    look.count();
    map.repaint(changes);
    drawLegend(legend, look, only, text);
    summary();
    headline();
    host.dataset.repainted = map.repainted;
    if (map.picked) showCard(true);
  },
  onPlaces(added, gone) {
    for (const name of added) isNew(name);
    if (gone.length) isChanged();
  },
});

/** Keep the node at the side as it is: what is drawn of it comes over the live channel. */
let stopPanel = null;
function followPanel(name) {
  stopPanel?.();
  stopPanel = name && subscribe(`panel:${name}`, {
    uids: () => [name],
    onMessage({ changed = [] }) {
      for (const { uid, html } of changed) if (uid === look.selected) writePanel(html[language] ?? html.en);
    },
  });
}

function writePanel(html) {
  const fresh = document.createElement("div");
  fresh.innerHTML = html;
  const chosen = panel.querySelector("[aria-selected=true]")?.dataset.gpu;
  const held = panel.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  panel.replaceChildren(...fresh.childNodes);
  panel.querySelector(`[data-gpu="${chosen}"]`)?.setAttribute("aria-selected", "true");
  if (held) panel.querySelector(`[href="${CSS.escape(held)}"]`)?.focus();
}

function headline() {
  const cells = nodes.flatMap((node) => node.cells);
  const figures = { used: cells.filter(isInUse).length, free: cells.filter((cell) => cell.state === "free").length, whole: nodes.filter(isWhole).length };
  for (const [name, value] of Object.entries(figures)) {
    const figure = document.querySelector(`[data-count="${name}"]`);
    if (figure) figure.textContent = numberWords(value);
  }
}

// Measurements that nobody renews grow old without a message.
setInterval(() => {
  if (MEASURES.has(look.mode) && !document.hidden) show();
}, 60_000);
host.dataset.repainted = 0;
if (look.selected) followPanel(look.selected);
