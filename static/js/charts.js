// ECharts with the page's own tokens. One import, and a redraw when the theme changes.
import * as echarts from "../vendor/echarts.esm.min.mjs";
import { language, numberWords } from "./words.js";

export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Draw `option()` into an element; again when the theme or the size changes. The result has `update`. */
export function draw(element, option) {
  const chart = echarts.init(element, null, { renderer: "svg" });
  const update = () => chart.setOption(option(), { notMerge: true });
  update();
  addEventListener("ba:theme", update);
  new ResizeObserver(() => chart.resize()).observe(element);
  return { chart, update };
}

/** A tick of the time axis: whole minutes without seconds, midnight as the day. */
function clock(at) {
  const time = new Date(at);
  if (time.getHours() + time.getMinutes() + time.getSeconds() === 0) return time.toLocaleDateString(language, { month: "short", day: "numeric" });
  const seconds = time.getSeconds() ? { second: "2-digit" } : {};
  return time.toLocaleTimeString(language, { hour: "2-digit", minute: "2-digit", hour12: false, ...seconds });
}

/** Axis, grid and tooltip that every chart over time shares. */
export function overTime() {
  const text = { color: token("--ba-ink3"), fontSize: 11, fontFamily: token("--ba-font") };
  return {
    animation: false,
    aria: { enabled: false },
    textStyle: { fontFamily: token("--ba-font") },
    grid: { left: 8, right: 12, top: 26, bottom: 4, containLabel: true },
    tooltip: {
      trigger: "axis",
      confine: true,
      backgroundColor: token("--ba-raise"),
      borderColor: token("--ba-line2"),
      textStyle: { color: token("--ba-ink"), fontSize: 12 },
      valueFormatter: (value) => (value === null || value === undefined ? "–" : numberWords(value)),
    },
    xAxis: {
      type: "time",
      axisLine: { lineStyle: { color: token("--ba-line2") } },
      axisTick: { show: false },
      axisLabel: { ...text, hideOverlap: true, formatter: clock },
      splitLine: { show: false },
    },
    yAxis: { type: "value", min: 0, axisLabel: { ...text, formatter: numberWords }, splitLine: { lineStyle: { color: token("--ba-line") } } },
  };
}
