// The overview, live: figures and queue bars change in place, the chart grows at its right end.
import { draw, overTime, token } from "./charts.js";
import { present } from "./clock.js";
import { subscribe } from "./live.js";
import { flag, patch } from "./patch.js";
import { amountWords, fill, numberWords, words } from "./words.js";

const GPU = "nvidia.com/gpu";
const STEP = 30_000;

const box = document.querySelector("[data-chart=queues]");
const source = box && JSON.parse(document.getElementById(box.dataset.source).textContent);
let chart = null;

/** A round number a little above the highest value, so that the axis ends on a tick. */
function nice(highest) {
  const step = 10 ** Math.floor(Math.log10(Math.max(1, highest)));
  const unit = [step / 5, step / 2, step].find((part) => highest / part <= 6) ?? step;
  return Math.ceil((highest * 1.06) / unit) * unit;
}

function option() {
  const names = Object.keys(source.series);
  const base = overTime();
  const series = names.map((name, i) => ({
    name: name || words.other,
    type: "line",
    stack: "queues",
    symbol: "none",
    lineStyle: { width: 1, color: token("--ba-bg") },
    itemStyle: { color: token(name ? `--cat-${i + 1}` : "--cat-0") },
    areaStyle: { color: token(name ? `--cat-${i + 1}` : "--cat-0"), opacity: 0.78 },
    data: source.times.map((at, k) => [at, source.series[name][k]]),
  }));
  const installed = fill(words.installed, { count: numberWords(source.installed) });
  series.push({
    name: installed,
    type: "line",
    symbol: "none",
    itemStyle: { color: token("--ba-ink") },
    lineStyle: { width: 1.2, color: token("--ba-ink") },
    data: source.times.map((at) => [at, source.installed]),
  });
  return {
    ...base,
    yAxis: { ...base.yAxis, max: (value) => nice(Math.max(value.max, source.installed)) },
    legend: { type: "scroll", pageIconColor: token("--ba-ink2"), pageIconInactiveColor: token("--ba-line2"), pageTextStyle: { color: token("--ba-ink3") }, top: 0, left: 0, icon: "rect", itemWidth: 11, itemHeight: 9, textStyle: { color: token("--ba-ink2"), fontSize: 12 }, inactiveColor: token("--ba-ink3") },
    series,
  };
}

if (box) chart = draw(box, option);

const figures = document.querySelector("[data-figures]");
subscribe("overview", {
  onMessage(message) {
    if (message.figures) patch(figures, message.figures);
  },
});

const latest = new Map();
const leaves = new Set([...document.querySelectorAll("[data-share]")].map((line) => line.dataset.share));
subscribe("queues", {
  onMessage(message) {
    for (const row of message.changed ?? []) {
      latest.set(row.name, row.allocated?.[GPU] ?? 0);
      const bar = document.querySelector(`[data-share="${CSS.escape(row.name)}"]`);
      if (bar) patchShare(bar, row);
    }
  },
});

function patchShare(line, row) {
  const bar = line.querySelector(".ba-share");
  const scale = Number(bar.dataset.scale) || 1;
  const allocated = row.allocated?.[GPU] ?? 0;
  const admitted = allocated + (row.inqueue?.[GPU] ?? 0);
  const widths = { "--alc": allocated, "--adm": admitted, "--des": row.deserved?.[GPU] ?? 0 };
  for (const [name, value] of Object.entries(widths)) bar.style.setProperty(name, `${Math.min(100, (100 * value) / scale).toFixed(2)}%`);
  const figure = line.querySelector("[data-allocated]");
  const text = amountWords(allocated, GPU);
  if (figure.textContent !== text) {
    figure.textContent = text;
    flag(figure);
  }
}

setInterval(() => {
  if (!chart || latest.size === 0 || document.hidden) return;
  source.times.push(present());
  for (const [name, units] of latest) {
    const named = Object.keys(source.series).filter(Boolean);
    if (units > 0 && !(name in source.series) && leaves.has(name) && named.length < 6) {
      source.series = { [name]: source.times.slice(0, -1).map(() => 0), ...source.series };
    }
  }
  const named = Object.keys(source.series);
  for (const name of named) {
    const values = source.series[name];
    values.push(name && latest.has(name) ? latest.get(name) / 1000 : values.at(-1));
  }
  chart.update();
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
