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
  if (series.length && source.installed) {
    series[0].markLine = {
      silent: true,
      symbol: "none",
      lineStyle: { color: token("--ba-ink"), type: "solid", width: 1.2 },
      label: { position: "insideStartTop", color: token("--ba-ink"), fontSize: 11, fontWeight: 600, formatter: fill(words.installed, { count: numberWords(source.installed) }) },
      data: [{ yAxis: source.installed }],
    };
  }
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
  const named = Object.keys(source.series);
  for (const name of named) {
    const values = source.series[name];
    values.push(name && latest.has(name) ? latest.get(name) / 1000 : values.at(-1));
  }
  chart.update();
}, STEP);
