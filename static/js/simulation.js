// Charts of a simulation's result, and one look again when a running one has ended.
import { draw, legend, nice, overTime, token } from "./charts.js";

const COLOURS = ["--cat-1", "--cat-2", "--cat-3", "--cat-4", "--cat-5", "--cat-6"];
const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3], [1, 2], [10, 4]];
const source = document.getElementById("sim-chart");

if (source) {
  const data = JSON.parse(source.textContent);
  for (const box of document.querySelectorAll("[data-sim]")) draw(box, () => (box.dataset.sim === "waits" ? bars(data) : course(data, box.dataset.sim)));
} else if (document.querySelector("[data-running]")) {
  document.addEventListener("htmx:afterSwap", () => {
    if (document.querySelector("#sim .ba-st[data-st=completed], #sim .ba-st[data-st=failed], #sim .ba-st[data-st=aborted]")) location.reload();
  });
}

/** What is the same in all of them: value axis, tooltip, legend. */
function frame(data, highest, unit) {
  const base = overTime([0], unit);
  return { ...base, yAxis: { ...base.yAxis, ...nice(highest) }, legend: legend(data.series.map((each) => each.name)), grid: { ...base.grid, top: 34 } };
}

function course(data, what) {
  const base = frame(data, what === "use" ? 96 : Math.max(1, ...data.series.flatMap((each) => each.waiting)), what === "use" ? "%" : "");
  const axis = { ...base.xAxis, type: "value", min: 0, max: "dataMax", minInterval: 0, axisLabel: { ...base.xAxis.axisLabel, formatter: (value) => `${Math.round(value * 10) / 10} ${data.span}` } };
  return {
    ...base,
    xAxis: axis,
    series: data.series.map((each, i) => {
      const color = token(COLOURS[i % 6]);
      return {
        type: "line", step: "end", name: each.name, symbol: "none", emphasis: { disabled: true },
        data: each[what].map((value, at) => [each.times[at], value]), lineStyle: { width: 1.5, color, type: DASHES[i % 6] }, itemStyle: { color },
      };
    }),
  };
}

function bars(data) {
  const base = frame(data, Math.max(0.01, ...data.series.flatMap((each) => each.waits.map((value) => value ?? 0))), data.wait);
  return {
    ...base,
    tooltip: { ...base.tooltip, axisPointer: { type: "shadow" } },
    xAxis: { type: "category", data: data.sizes, axisLabel: { ...base.xAxis.axisLabel, formatter: undefined, showMaxLabel: true }, axisLine: base.xAxis.axisLine, axisTick: { show: false } },
    series: data.series.map((each, i) => ({ type: "bar", name: each.name, data: each.waits, barMaxWidth: 46, itemStyle: { color: token(COLOURS[i % 6]) } })),
  };
}
