// The overview, live: figures and queue bars change in place, the chart grows at its right end.
import { subscribe } from "./live.js";
import { flag, patch } from "./patch.js";
import { stack } from "./stack.js";
import { amountWords, fill, numberWords, words } from "./words.js";

const STEP = 30_000;

const box = document.querySelector("[data-chart=queues]");
const chart = box && stack(box);
const told = box ? JSON.parse(document.getElementById(box.dataset.source).textContent) : {};
const GPU = told.gpu ?? "nvidia.com/gpu";
let asked = null;

const figures = document.querySelector("[data-figures]");
subscribe("overview", {
  onMessage(message) {
    if (!message.figures) return;
    patch(figures, message.figures);
    asked = message.figures.gpus_waiting;
  },
});

const latest = new Map();
const queues = new Set(told.queues ?? []);
subscribe("queues", {
  uids: () => [...queues],
  onMessage(message) {
    for (const row of message.changed ?? []) {
      if (queues.has(row.name)) latest.set(row.name, (row.allocated?.[GPU] ?? 0) / 1000);
      const bar = document.querySelector(`[data-share="${CSS.escape(row.name)}"]`);
      if (bar) patchShare(bar, row);
    }
    if (message.type === "snapshot" && latest.size) chart?.push(latest, asked);
  },
});

function patchShare(line, row) {
  const bar = line.querySelector(".ba-share");
  const scale = Number(bar.dataset.scale) || 1;
  const allocated = row.allocated?.[GPU] ?? 0;
  const admitted = allocated + (row.inqueue?.[GPU] ?? 0);
  const widths = { "--alc": allocated, "--adm": admitted, "--des": row.deserved?.[GPU] ?? 0 };
  for (const [name, value] of Object.entries(widths)) bar.style.setProperty(name, `${Math.min(100, (100 * value) / scale).toFixed(2)}%`);
  put(line.querySelector("[data-allocated]"), amountWords(allocated, GPU));
  put(line.querySelector("[data-deserved]"), amountWords(row.deserved?.[GPU] ?? 0, GPU));
  put(line.querySelector("[data-waiting]"), numberWords(row.groups_pending + row.groups_inqueue));
}

function put(figure, text) {
  if (figure.textContent === text) return;
  figure.textContent = text;
  flag(figure);
}

setInterval(() => {
  if (chart && latest.size && !document.hidden) chart.push(latest, asked);
}, STEP);

// The small map: a node's cells follow the topology; the words beside a spine count what is free.
subscribe("topology", {
  onMessage(message) {
    const touched = new Set();
    for (const row of message.changed ?? []) {
      const strip = document.querySelector(`.mini-node[data-node="${CSS.escape(row.node)}"]`);
      if (!strip) continue;
      for (const gpu of row.gpus) {
        const cell = strip.children[gpu.index];
        const state = !row.ready ? "unknown" : gpu.state === "free" && row.cordoned ? "cordoned" : gpu.state;
        if (cell) cell.className = `g-${state}`;
      }
      touched.add(strip.closest(".mini"));
    }
    for (const spine of touched) {
      const cells = spine.querySelectorAll(".mini-node i");
      const free = spine.querySelectorAll(".mini-node .g-free").length;
      spine.querySelector("[data-free]").textContent = fill(words.freeOf, { free: numberWords(free), total: numberWords(cells.length) });
    }
  },
});
