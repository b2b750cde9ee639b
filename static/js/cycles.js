// Cycles as stacked bars, by action or by plugin; a bar opens its cycle. New ones come over the live channel, the chart follows.
import { draw, nice, overTime, token } from "./charts.js";
import { numberWords } from "./words.js";
import { clockOf } from "./zone.js";

const box = document.getElementById("ck-chart");
const NAMED = 640; // px of width from which the line of P99 carries its name

const read = () => JSON.parse(document.getElementById(box.dataset.source)?.textContent ?? "null");
const clock = clockOf;

function option(data) {
  const base = overTime([0], "ms");
  const sums = data.times.map((_, k) => data.bands.reduce((sum, band) => sum + band.values[k], 0));
  const ink = token("--ba-ink2");
  const series = data.bands.map((band) => ({
    name: band.name, type: "bar", stack: "cycle", barCategoryGap: "12%", barMaxWidth: 22, cursor: "pointer",
    data: band.values, itemStyle: { color: token(`--cat-${band.colour}`), opacity: 0.84 }, emphasis: { focus: "none" },
  }));
  if (data.p99 && series.length) {
    series.at(-1).markLine = {
      silent: true, symbol: "none", animation: false, lineStyle: { color: ink, type: "dotted", width: 1.2 }, data: [{ yAxis: data.p99 }],
      label: { formatter: `${box.dataset.p99} ${numberWords(data.p99)}`, position: box.clientWidth >= NAMED ? "end" : "insideEndTop", color: ink, fontSize: 11 },
    };
  }
  return {
    ...base,
    grid: { ...base.grid, top: 30, right: box.clientWidth >= NAMED ? 70 : 8 },
    legend: { data: data.bands.map((band) => band.name), type: "scroll", top: 0, left: 0, icon: "rect", itemWidth: 11, itemHeight: 9, textStyle: { color: ink, fontSize: 12 } },
    tooltip: {
      ...base.tooltip,
      axisPointer: { type: "shadow" },
      formatter: (marks) => {
        const at = marks[0].dataIndex;
        const lines = marks.filter((mark) => mark.value > 0).map((mark) => `${mark.marker} ${mark.seriesName} <b>${numberWords(mark.value)}</b> ms`);
        return [`${box.dataset.cycle} ${data.numbers[at]} · ${clock(data.times[at])} · <b>${numberWords(sums[at])}</b> ms`, ...lines].join("<br>");
      },
    },
    xAxis: { ...base.xAxis, type: "category", min: undefined, max: undefined, axisPointer: { label: { show: false } }, data: data.times.map(String), axisLabel: { ...base.xAxis.axisLabel, formatter: (at) => clock(Number(at)), interval: Math.max(0, Math.ceil(data.times.length / Math.max(2, box.clientWidth / 190)) - 1) } },
    yAxis: { ...base.yAxis, ...nice(Math.max(1, data.p99 ?? 0, ...sums)) },
    series,
  };
}

if (box) {
  let data = read();
  const { chart, update } = draw(box, () => option(data));
  chart.getZr().on("click", (event) => {
    const [at] = chart.convertFromPixel({ seriesIndex: 0 }, [event.offsetX, event.offsetY]);
    const number = data.numbers[Math.round(at)];
    if (number !== undefined) location.href = `cycles/${number}/?id=${data.ids[Math.round(at)]}`;
  });
  const follow = () => {
    const fresh = read();
    if (!fresh || JSON.stringify(fresh) === JSON.stringify(data)) return;
    data = fresh;
    update();
  };
  document.addEventListener("htmx:afterSwap", follow);
  document.addEventListener("basalt:parts", follow);
}
