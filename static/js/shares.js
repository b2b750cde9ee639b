// Shares over time, drawn by ECharts from the page's own data; colours come from the tokens.
import * as echarts from "../vendor/echarts.esm.min.mjs";

const box = document.getElementById("shares");
if (box) {
  const data = JSON.parse(document.getElementById("shares-data").textContent);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const stacked = box.dataset.stacked === "1";
  const unit = box.dataset.unit;
  const number = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 1 });
  const chart = echarts.init(box, null, { renderer: "canvas" });
  const round = (value) => { // up to half a power of ten, so that the last tick keeps its distance
    const step = 10 ** Math.floor(Math.log10(value || 1)) / 2;
    return Math.ceil(value / step) * step;
  };
  const styles = {
    allocated: ["--st-running", "solid", true],
    inqueue: ["--st-inqueue", "solid", false],
    deserved: ["--ba-ink", "dashed", false],
    request: ["--st-pending", "dotted", false],
  };

  const series = () => Object.entries(data.series).map(([name, values], index) => {
    const [token, dash, filled] = stacked ? [`--cat-${name ? index + 1 : 0}`, "solid", true] : styles[name];
    const color = css(token);
    return {
      type: "line",
      name: stacked ? name || data.others : data.words[name],
      data: values.map((value, at) => [data.times[at], value]),
      stack: stacked ? "all" : undefined,
      step: "end",
      symbol: "none",
      lineStyle: { width: stacked ? 1 : 1.5, color: stacked ? css("--ba-bg") : color, type: dash },
      itemStyle: { color },
      areaStyle: filled ? { color, opacity: stacked ? 0.74 : 0.14 } : undefined,
      emphasis: { disabled: true },
      markLine: stacked && index === 0 && data.capacity ? {
        silent: true, symbol: "none", animation: false,
        lineStyle: { color: css("--ba-ink"), type: "solid", width: 1 },
        label: { formatter: `${box.dataset.capacityWord} ${number.format(data.capacity)}${unit ? ` ${unit}` : ""}`, position: "insideEndTop", color: css("--ba-ink"), fontWeight: 600, fontSize: 11 },
        data: [{ yAxis: data.capacity }],
      } : undefined,
    };
  });

  const draw = () => {
    const font = { fontFamily: css("--ba-font"), fontSize: 11, color: css("--ba-ink3") };
    chart.setOption({
      animation: false,
      textStyle: font,
      grid: { left: 8, right: 12, top: 46, bottom: 6, containLabel: true },
      legend: { top: 0, left: 0, itemWidth: 14, itemHeight: 8, icon: "rect", textStyle: { ...font, color: css("--ba-ink2") } },
      tooltip: {
        trigger: "axis", backgroundColor: css("--ba-raise"), borderWidth: 0, textStyle: { ...font, color: css("--ba-ink") },
        valueFormatter: (value) => (value == null ? "–" : `${number.format(value)}${unit ? ` ${unit}` : ""}`),
      },
      xAxis: { type: "time", axisLine: { lineStyle: { color: css("--ba-line2") } }, axisLabel: { ...font, hideOverlap: true }, splitLine: { show: false } },
      yAxis: { type: "value", min: 0, max: stacked && data.capacity ? (range) => round(Math.max(range.max, data.capacity)) : undefined, axisLabel: { ...font, formatter: (value) => number.format(value) }, splitLine: { lineStyle: { color: css("--ba-line") } } },
      series: series(),
    }, true);
  };

  draw();
  addEventListener("ba:theme", draw);
  new ResizeObserver(() => chart.resize()).observe(box);
}
