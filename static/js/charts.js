// ECharts with the page's own tokens. One import, and a redraw when the theme changes.
import * as echarts from "../vendor/echarts.esm.min.mjs";
import { numberWords } from "./words.js";
import { clockOf, inZone, titleOf } from "./zone.js";

const SHORTEST = 600_000; // the time axis shows ten minutes at least, so that a young chart does not count seconds

export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Draw `option()` into an element; again when the theme or the size changes. `after(chart)` adds what needs the layout. */
export function draw(element, option, after = () => {}) {
  const chart = echarts.init(element, null, { renderer: "svg" });
  const update = () => {
    chart.setOption(option(), { notMerge: true });
    after(chart);
  };
  update();
  addEventListener("ba:theme", update);
  new ResizeObserver(() => {
    chart.resize();
    update();
  }).observe(element);
  return { chart, update };
}

/** An axis of at most six round steps that ends on a tick a little above the highest value. */
export function nice(highest) {
  const top = Math.max(1, highest * 1.03);
  const step = 10 ** Math.floor(Math.log10(top));
  const interval = [0.2, 0.5, 1, 2].map((part) => part * step).find((part) => top / part <= 6);
  return { max: Math.ceil(top / interval) * interval, interval };
}

/** A tick of the time axis: whole minutes without seconds, midnight as the day. */
function clock(at) {
  const time = clockOf(at);
  if (time === "00:00:00") return inZone(at, { month: "short", day: "numeric" });
  return time.endsWith(":00") ? time.slice(0, -3) : time;
}

/** Axis, grid and tooltip that every chart over time shares; `times` are its instants, `unit` stands behind its numbers. */
export function overTime(times, unit = "") {
  const text = { color: token("--ba-ink3"), fontSize: 11, fontFamily: token("--ba-font") };
  const last = times.at(-1) ?? 0;
  return {
    animation: false,
    aria: { enabled: false },
    textStyle: { fontFamily: token("--ba-font") },
    grid: { left: 2, right: 12, top: 26, bottom: 4, containLabel: true },
    tooltip: {
      trigger: "axis",
      confine: true,
      axisPointer: { lineStyle: { color: token("--ba-ink3"), type: "solid" } },
      backgroundColor: token("--ba-raise"),
      borderColor: token("--ba-line2"),
      textStyle: { color: token("--ba-ink"), fontSize: 12 },
      valueFormatter: (value) => (value === null || value === undefined ? "–" : `${numberWords(value)}${unit && ` ${unit}`}`),
    },
    xAxis: {
      type: "time",
      min: Math.min(times[0] ?? 0, last - SHORTEST),
      max: last,
      axisLine: { lineStyle: { color: token("--ba-line2") } },
      axisTick: { show: false },
      axisLabel: { ...text, hideOverlap: true, showMaxLabel: false, formatter: clock },
      splitLine: { show: false },
      axisPointer: { label: { formatter: ({ value }) => titleOf(value) } },
    },
    yAxis: { type: "value", min: 0, axisLabel: { ...text, formatter: numberWords }, splitLine: { lineStyle: { color: token("--ba-line") } } },
  };
}

/** The words of a chart's legend, in the page's type. */
export function legend(names) {
  return { data: names, type: "scroll", top: 0, left: 0, icon: "rect", itemWidth: 11, itemHeight: 9, textStyle: { color: token("--ba-ink2"), fontSize: 12 }, inactiveColor: token("--ba-ink3"), pageIconColor: token("--ba-ink2"), pageIconInactiveColor: token("--ba-line2"), pageTextStyle: { color: token("--ba-ink3") } };
}
