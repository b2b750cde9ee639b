// The page of GPUs: colouring, legend, hover card, keys, the node at the side, and live changes.
import { queueCategory } from "./colours.js";
import { FleetMap } from "./fleetmap.js";
import { subscribe } from "./live.js";
import { isChanged, isNew } from "./news.js";
import { fill, numberWords, shortModel } from "./words.js";

const host = document.getElementById("hm");
const card = document.getElementById("hm-card");
const say = document.getElementById("hm-say");
const legend = document.getElementById("hm-legend");
const panel = document.getElementById("hm-panel");
const columns = document.getElementById("hm-cols");
const find = document.getElementById("hm-find");
const text = JSON.parse(document.getElementById("hm-words").textContent);
const data = JSON.parse(document.getElementById("hm-data").textContent);
const STATES = { a: "allocated", f: "free", r: "releasing", u: "unhealthy", c: "cordoned", x: "unknown" };
const MARKS = { allocated: "running", free: "pending", releasing: "terminating", unhealthy: "failed", cordoned: "aborted", unknown: "unknown" };

const jobs = new Map();
const jobOf = (uid, name, queue, user) => {
  const key = `${uid}\n${name}\n${queue}`;
  if (!jobs.has(key)) jobs.set(key, { uid, name, queue, user });
  const job = jobs.get(key);
  if (user) job.user = user;
  return job;
};
const table = data.jobs.map((job) => jobOf(...job));
const nodes = data.nodes.map(([name, spine, rack, model, ready, cordoned, letters, held]) => ({
  name, spine, rack, model, ready, cordoned, label: "",
  cells: [...letters].map((letter, gpu) => ({ state: STATES[letter], job: held[gpu] < 0 ? null : table[held[gpu]] })),
}));
shorten(nodes);

const VALUE = { queue: (node, cell) => cell.job?.queue, job: (node, cell) => cell.job?.name, user: (node, cell) => cell.job?.user, model: (node) => node.model };
const model = new URL(location.href).searchParams.get("model");
const look = {
  mode: host.dataset.mode, ranks: new Map(), selected: host.dataset.selected, picked: null, filter: null,
  fill(node, cell) {
    if (look.mode === "model" && cell.state === "free") return { tint: look.ranks.get(node.model) ?? 0 };
    if (look.mode === "state" || cell.state !== "allocated") return cell.state;
    return look.ranks.get(VALUE[look.mode](node, cell) || "") ?? 0;
  },
};

const words = (spine) => {
  const cells = spine.nodes.flatMap((node) => node.cells);
  const free = cells.filter((cell) => cell.state === "free").length;
  const whole = spine.nodes.filter(isWhole).length;
  const models = [...new Set(spine.nodes.map((node) => shortModel(node.model)))].join(" · ");
  const parts = [fill(text.spineFree, { free: numberWords(free), total: numberWords(cells.length) }), whole ? fill(text.whole, { count: numberWords(whole) }) : text.noWhole];
  return { name: `${spine.name || text.noSpine}  ${models}`, detail: parts.join(" · ") };
};
words.rack = (rack) => {
  const free = rack.nodes.reduce((sum, node) => sum + node.cells.filter((cell) => cell.state === "free").length, 0);
  return { title: rack.name ? (/rack/i.test(rack.name) ? rack.name : fill(text.rack, { name: rack.name })) : rack.first ? text.noRack : "", free: free ? fill(text.free, { count: free }) : text.full };
};
words.node = (node) => (!node.ready ? text.unknown : node.cordoned ? text.cordoned : "");

const map = new FleetMap(host, nodes, look, words);
setMode(look.mode);
if (find.value) highlight(find.value);

/* ---- colouring and legend ---- */
document.getElementById("hm-modes").addEventListener("click", (event) => {
  const button = event.target.closest("[data-mode]");
  if (button) setMode(button.dataset.mode);
});
find.addEventListener("input", () => highlight(find.value));
addEventListener("ba:theme", () => map.redraw());

function setMode(mode) {
  look.mode = mode;
  for (const button of document.querySelectorAll("#hm-modes [data-mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
  rank();
  map.redraw();
  drawLegend();
  const url = new URL(location.href);
  if (mode === "state") url.searchParams.delete("by");
  else url.searchParams.set("by", mode);
  history.replaceState(history.state, "", url);
}

/** The six largest values get a colour each, all others grey; queues keep the colour that they have everywhere. */
function rank() {
  look.counts = new Map();
  const value = VALUE[look.mode];
  for (const node of nodes) for (const cell of node.cells) {
    const key = value ? (cell.state === "allocated" || look.mode === "model" ? value(node, cell) || "" : null) : cell.state;
    if (key !== null) look.counts.set(key, (look.counts.get(key) ?? 0) + 1);
  }
  if (!value) return;
  const order = [...look.counts].filter(([key]) => key).sort(([a, n], [b, m]) => m - n || a.localeCompare(b));
  look.ranks = look.mode === "queue"
    ? new Map(order.map(([key]) => [key, queueCategory(key)]).filter(([, category]) => category))
    : new Map(order.slice(0, 6).map(([key], at) => [key, at + 1]));
}

function drawLegend() {
  const entry = (swatch, label, count) => {
    const item = document.createElement("span");
    const name = document.createElement("span");
    name.className = "name";
    name.textContent = label;
    name.title = label;
    const value = document.createElement("b");
    value.textContent = numberWords(count);
    item.append(swatch, name, " ", value);
    return item;
  };
  const swatch = (name, value) => {
    const mark = document.createElement("i");
    mark.className = "hm-sw";
    mark.setAttribute("aria-hidden", "true");
    mark.dataset[name] = value;
    return mark;
  };
  const count = (key) => look.counts.get(key) ?? 0;
  if (look.mode === "state") {
    const shown = Object.keys(text.states).filter((state) => count(state) || state === "allocated" || state === "free");
    legend.replaceChildren(...shown.map((state) => entry(swatch("state", state), text.states[state], count(state))));
    return;
  }
  const items = [...look.ranks].map(([key, at]) => entry(swatch("cat", at), look.mode === "model" ? shortModel(key) : key, count(key)));
  const rest = [...look.counts].reduce((sum, [key, number]) => sum + (look.ranks.has(key) ? 0 : number), 0);
  if (rest) items.push(entry(swatch("cat", 0), text.others, rest));
  const note = look.mode === "model" ? text.lighter : items.length ? "" : text.idle;
  if (note) items.push(Object.assign(document.createElement("span"), { className: "ink3", textContent: note }));
  legend.replaceChildren(...items);
}

function highlight(wanted) {
  const needle = wanted.trim().toLowerCase();
  look.filter = needle ? (node, { job }) => [node.name, job?.uid, job?.name, job?.queue, job?.user].some((part) => part?.toLowerCase().includes(needle)) : null;
  map.redraw();
}

/* ---- pointer ---- */
host.addEventListener("pointermove", (event) => {
  const band = event.target.band;
  pick(band ? map.at(band, event.offsetX, event.offsetY) : null, event);
});
host.addEventListener("pointerleave", () => pick(null));
host.addEventListener("click", (event) => {
  const hit = event.target.band && map.at(event.target.band, event.offsetX, event.offsetY);
  if (hit) select(hit.node, hit.gpu);
});
host.addEventListener("dblclick", (event) => {
  const hit = event.target.band && map.at(event.target.band, event.offsetX, event.offsetY);
  if (hit) open(hit);
});

/* ---- keys ---- */
const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
host.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !nodes.length) return;
  const here = look.picked ?? { node: nodes[0], gpu: 0 };
  if (STEPS[event.key]) pick(look.picked ? map.step(here, ...STEPS[event.key]) : here);
  else if (event.key === "Home") pick({ node: here.node, gpu: 0 });
  else if (event.key === "End") pick({ node: here.node, gpu: here.node.cells.length - 1 });
  else if (event.key === "Enter") open(here);
  else if (event.key === " ") select(here.node, here.gpu);
  else if (event.key === "n" || event.key === "N") location.assign(host.dataset.nodeUrl.replace("NODE", encodeURIComponent(here.node.name)));
  else if (event.key === "Escape") pick(null);
  else return;
  event.preventDefault();
});
host.addEventListener("blur", () => pick(null));

function pick(hit, event = null) {
  const wanted = hit && hit.gpu >= 0 ? hit : null;
  host.style.cursor = hit ? "pointer" : "";
  if (wanted?.node === look.picked?.node && wanted?.gpu === look.picked?.gpu) return;
  const bands = new Set([look.picked, wanted].filter(Boolean).map(({ node }) => map.places.get(node).band));
  look.picked = wanted;
  for (const band of bands) if (band.seen) map.draw(band);
  showCard(event);
}

function showCard(event) {
  card.hidden = !look.picked;
  if (!look.picked) return;
  const { node, gpu } = look.picked;
  const cell = node.cells[gpu];
  const title = document.createElement("h4");
  const name = document.createElement("span");
  name.textContent = fill(text.cell, { node: node.name, gpu });
  const model = document.createElement("span");
  model.className = "ink3";
  model.textContent = shortModel(node.model);
  title.append(name, model);
  const list = document.createElement("dl");
  list.className = "ba-kv";
  const rows = [[text.state, stateMark(cell.state)]];
  if (cell.job) rows.push([text.job, cell.job.name || text.others], [text.queue, cell.job.queue], [text.user, cell.job.user || "–"]);
  for (const [word, value] of rows) {
    const dt = document.createElement("dt");
    dt.textContent = word;
    const dd = document.createElement("dd");
    dd.append(value);
    list.append(dt, dd);
  }
  card.replaceChildren(title, list);
  place();
  if (!event) {
    say.textContent = [name.textContent, text.states[cell.state], cell.job?.name, cell.job?.queue].filter(Boolean).join(", ");
    map.places.get(node).band.canvas.scrollIntoView({ block: "nearest" });
  }
}

function stateMark(state) {
  const mark = document.createElement("span");
  mark.className = "ba-st";
  mark.dataset.st = MARKS[state];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "g");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#st-${MARKS[state]}`);
  svg.append(use);
  mark.append(svg, text.states[state]);
  return mark;
}

/** Beside the GPU, inside the section. */
function place() {
  const box = map.box(look.picked);
  const room = host.offsetParent;
  const x = host.offsetLeft + box.x;
  const y = host.offsetTop + box.y;
  const right = x + box.w + 12;
  card.style.left = `${right + card.offsetWidth > room.clientWidth - 4 ? Math.max(4, x - card.offsetWidth - 12) : right}px`;
  card.style.top = `${Math.max(4, Math.min(y + 16, room.clientHeight - card.offsetHeight - 4))}px`;
}

/* ---- to node and job ---- */
function open({ node, gpu }) {
  const uid = node.cells[gpu]?.job?.uid;
  location.assign(uid ? host.dataset.jobUrl.replace("UID", encodeURIComponent(uid)) : host.dataset.nodeUrl.replace("NODE", encodeURIComponent(node.name)));
}

async function select(node, gpu) {
  look.selected = node.name;
  const url = new URL(location.href);
  url.searchParams.set("node", node.name);
  history.replaceState(history.state, "", url);
  columns.classList.add("with-panel");
  panel.hidden = false;
  await htmx.ajax("GET", host.dataset.panelUrl.replace("NODE", encodeURIComponent(node.name)), { target: "#hm-panel", swap: "innerHTML" });
  map.redraw();
  panel.querySelector(`[data-gpu="${gpu}"]`)?.setAttribute("aria-selected", "true");
}

panel.addEventListener("click", (event) => {
  if (!event.target.closest("[data-close]")) return;
  event.preventDefault();
  look.selected = "";
  panel.hidden = true;
  columns.classList.remove("with-panel");
  const url = new URL(location.href);
  url.searchParams.set("node", ""); // none, also after a reload
  history.replaceState(history.state, "", url);
  map.redraw();
  host.focus();
});

/* ---- live ---- */
subscribe("topology", {
  onMessage(message) {
    const spines = new Set();
    let news = false;
    for (const row of message.changed ?? []) {
      const node = map.byName.get(row.node);
      if (!node) {
        if (row.gpus.length && !model) isNew(row.node);
        continue;
      }
      const before = node.cells;
      const word = words.node(node);
      node.ready = row.ready;
      node.cordoned = row.cordoned;
      node.cells = before.map((cell, index) => cell);
      for (const gpu of row.gpus) {
        if (gpu.index < node.cells.length) node.cells[gpu.index] = { state: stateOf(node, gpu), job: gpu.job_uid || gpu.queue ? jobOf(gpu.job_uid, gpu.job, gpu.queue, gpu.owner) : null };
      }
      if (!before.some((cell, gpu) => cell.state !== node.cells[gpu].state || cell.job !== node.cells[gpu].job) && word === words.node(node)) continue;
      news = true;
      spines.add(map.spines.find((spine) => spine.nodes.includes(node)));
      const place_ = map.places.get(node);
      if (word !== words.node(node) && place_?.band.seen) map.draw(place_.band);
      else map.repaint(node, before);
      if (node.name === look.selected) refreshPanel();
    }
    if ((message.gone ?? []).some((name) => map.byName.has(name))) isChanged();
    if (!news) return;
    rank();
    drawLegend();
    for (const spine of spines) map.describe(spine);
    headline();
    host.dataset.repainted = String(map.repainted);
    if (look.picked) showCard(new Event("live"));
  },
});

let panelTimer = 0;
function refreshPanel() {
  clearTimeout(panelTimer);
  panelTimer = setTimeout(() => {
    if (look.selected) htmx.ajax("GET", host.dataset.panelUrl.replace("NODE", encodeURIComponent(look.selected)), { target: "#hm-panel", swap: "innerHTML" });
  }, 1000);
}

function stateOf(node, gpu) {
  if (!node.ready) return "unknown";
  return gpu.state === "free" && node.cordoned ? "cordoned" : gpu.state;
}

function headline() {
  const count = (...wanted) => nodes.reduce((sum, node) => sum + node.cells.filter((cell) => wanted.includes(cell.state)).length, 0);
  const figures = { used: count("allocated", "releasing"), free: count("free"), whole: nodes.filter(isWhole).length };
  for (const [name, value] of Object.entries(figures)) {
    const place_ = document.querySelector(`[data-count="${name}"]`);
    if (place_) place_.textContent = numberWords(value);
  }
}

function isWhole(node) {
  return node.cells.length > 0 && node.cells.every((cell) => cell.state === "free");
}

/** Labels: the node's name without what all names of its rack begin with. */
function shorten(all) {
  const racks = new Map();
  for (const node of all) {
    const key = `${node.spine}\n${node.rack}`;
    if (!racks.has(key)) racks.set(key, []);
    racks.get(key).push(node);
  }
  for (const members of racks.values()) {
    const names = members.map((node) => node.name);
    let shared = names.length > 1 ? names[0].length : 0;
    for (const name of names) while (shared && !name.startsWith(names[0].slice(0, shared))) shared -= 1;
    const cut = names[0].slice(0, shared).lastIndexOf("-") + 1;
    for (const node of members) node.label = node.name.slice(cut);
  }
}
