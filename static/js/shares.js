// Shares over time on the pages of queues: all of them as a stack, or one queue's own figures. Both grow as time goes on.
import { draw, legend, nice, overTime, token } from "./charts.js";
import { present } from "./clock.js";
import { subscribe } from "./live.js";
import { scrub } from "./scrub.js";
import { stack } from "./stack.js";

const STEP = 30_000;
const STYLES = {
  allocated: ["--st-running", "solid", true],
  inqueue: ["--st-inqueue", "solid", false],
  deserved: ["--ba-ink", "dashed", false],
  request: ["--st-pending", "dotted", false],
};
const box = document.getElementById("shares");

if (box?.dataset.queue) one();
else if (box) all();

function all() {
  const { chart, push } = stack(box);
  scrub(chart, box);
  const { resource, divisor, queues } = JSON.parse(document.getElementById(box.dataset.source).textContent);
  const latest = new Map();
  const take = (row) => queues.includes(row.name) && latest.set(row.name, (row.allocated?.[resource] ?? 0) / divisor);
  grow(queues, take, () => latest.size && push(latest));
}

function one() {
  const { unit = "" } = box.dataset;
  const source = JSON.parse(document.getElementById(box.dataset.source).textContent);
  const option = () => {
    const names = Object.keys(source.series);
    const base = overTime(source.times, unit);
    const highest = Math.max(0, ...names.flatMap((name) => source.series[name]));
    return {
      ...base,
      grid: { ...base.grid, top: 34 },
      yAxis: { ...base.yAxis, ...nice(highest) },
      legend: legend(names.map((name) => source.words[name])),
      series: names.map((name) => {
        const [colour, type, filled] = STYLES[name];
        const color = token(colour);
        return {
          type: "line", name: source.words[name], symbol: "none", emphasis: { disabled: true },
          data: source.series[name].map((value, at) => [source.times[at], value]),
          lineStyle: { width: 1.5, color, type }, itemStyle: { color }, areaStyle: filled ? { color, opacity: 0.14 } : undefined,
        };
      }),
    };
  };
  const drawn = draw(box, option);
  scrub(drawn.chart, box);
  const latest = new Map(); // the queue's own figures, and of those below it
  // As the server adds up: an inner queue has what the queues below it have together, at least.
  const together = (part) => {
    const below = new Map();
    for (const name of source.queues.toReversed()) {
      const amount = Math.max(latest.get(name)?.[part]?.[source.resource] ?? 0, below.get(name) ?? 0);
      if (name === source.queues[0]) return amount;
      below.set(source.parents[name], (below.get(source.parents[name]) ?? 0) + amount);
    }
    return 0;
  };
  const push = () => {
    if (!latest.size) return;
    source.times.push(present());
    for (const [part, values] of Object.entries(source.series)) values.push(together(part) / source.divisor);
    drawn.update();
  };
  grow(source.queues, (row) => source.queues.includes(row.name) && latest.set(row.name, row), push);
}

/** Take in the queues' figures; add a point when they are first known, and one each half minute. */
function grow(queues, take, push) {
  if (box.hasAttribute("data-past")) return;
  subscribe("queues", {
    uids: () => queues,
    onMessage(message) {
      (message.changed ?? []).forEach(take);
      if (message.type === "snapshot") push();
    },
  });
  setInterval(() => document.hidden || push(), STEP);
}
