// Queues over time as a stack: each band in its queue's colour and named at its right end, capacity and demand drawn over it.
import { draw, legend, nice, overTime, token } from "./charts.js";
import { present } from "./clock.js";
import { queueCategory } from "./colours.js";
import { numberWords, words } from "./words.js";

const NAMES_FROM = 520; // px of width from which the bands carry their names; a legend does below
const NAME_WIDTH = 92;
const LINE = 15;
const BEYOND = 2; // times what is installed: demand beyond that is told in words, so that supply stays to be seen,
const CUT = 1.3; // and the drawing ends here

/** A queue without a colour of its own is not one of the others, which are grey. */
const colour = (name) => token(name ? (queueCategory(name) ? `--cat-${queueCategory(name)}` : "--ba-ink2") : "--cat-0");

/** Draw the stack that `box` names the source of; the result has the chart, and `push(latest, asked)`, which adds the present moment. */
export function stack(box) {
  const source = JSON.parse(document.getElementById(box.dataset.source).textContent);
  const { unit = "" } = box.dataset;
  const wide = () => box.clientWidth >= NAMES_FROM;
  const named = (name) => name || words.others;
  const order = () => Object.keys(source.series).sort((a, b) => !a - !b || (queueCategory(a) || 9) - (queueCategory(b) || 9) || a.localeCompare(b));
  const used = (at) => Object.values(source.series).reduce((sum, values) => sum + (values[at] ?? 0), 0);
  const line = (name, values, more) => ({ name, type: "line", symbol: "none", emphasis: { disabled: true }, data: source.times.map((at, k) => [at, values(k)]), ...more });

  function option() {
    const base = overTime(source.times, unit);
    const series = order().map((name) => {
      const color = colour(name);
      return line(named(name), (k) => source.series[name][k], {
        stack: "queues",
        lineStyle: { width: 1, color: token("--ba-bg") },
        itemStyle: { color },
        areaStyle: { color, opacity: 0.78 },
      });
    });
    const ink = token("--ba-ink");
    const asked = (k) => used(k) + (source.asked?.[k] ?? 0);
    if (source.asked) series.push(line(words.asked, asked, { itemStyle: { color: ink }, lineStyle: { width: 1.3, type: [4, 3], color: ink } }));
    const capacity = {
      silent: true, symbol: "none", animation: false, lineStyle: { color: ink, type: "solid", width: 1.2 },
      label: { formatter: `${box.dataset.capacityWord} ${numberWords(source.capacity)}${unit && ` ${unit}`}`, position: "insideStartTop", color: ink, fontWeight: 600, fontSize: 11 },
      data: [{ yAxis: source.capacity }],
    };
    if (source.capacity) (series.at(-1) ?? {}).markLine = capacity;
    const peak = Math.max(source.capacity ?? 0, ...source.times.map((_, k) => (source.asked ? asked(k) : used(k))));
    const highest = source.capacity && peak > BEYOND * source.capacity ? CUT * source.capacity : peak;
    const cut = peak > highest && { text: `↑ ${words.asked} ${numberWords(peak)}`, right: wide() ? NAME_WIDTH + 28 : 14, top: wide() ? 10 : 28, padding: 2, backgroundColor: token("--ba-bg"), textStyle: { color: ink, fontSize: 11, fontWeight: 600 } };
    return {
      ...base,
      ...(cut && { title: cut }),
      grid: { ...base.grid, top: wide() ? 12 : 30, right: wide() ? NAME_WIDTH + 22 : 12 },
      yAxis: { ...base.yAxis, ...nice(highest) },
      legend: wide() ? { show: false } : legend(order().map(named)),
      series,
    };
  }

  /** Names beside the ends of the bands, apart enough to be read. */
  function names(chart) {
    if (!wide()) return;
    const at = source.times.length - 1;
    let below = 0;
    let free = chart.convertToPixel({ yAxisIndex: 0 }, 0);
    const children = [];
    const places = order().map((name) => {
      const value = source.series[name][at] ?? 0;
      const y = Math.min(chart.convertToPixel({ yAxisIndex: 0 }, below + value / 2), free - LINE / 2);
      below += value;
      free = y - LINE / 2;
      return { name, y };
    });
    let top = LINE / 2;
    for (const place of places.reverse()) { // those that were pushed out at the top come back, and push the ones below
      place.y = Math.max(place.y, top);
      top = place.y + LINE;
    }
    for (const { name, y } of places) {
      const x = box.clientWidth - NAME_WIDTH - 14;
      children.push(
        { type: "rect", silent: true, shape: { x, y: y - 4, width: 8, height: 8 }, style: { fill: colour(name) } },
        { type: "text", silent: true, x: x + 14, y, style: { text: named(name), width: NAME_WIDTH, overflow: "truncate", verticalAlign: "middle", font: `400 12px ${token("--ba-font")}`, fill: token("--ba-ink2") } },
      );
    }
    chart.setOption({ graphic: children });
  }

  const drawn = draw(box, option, names);

  /** Add the present moment: `latest` maps queues to what they have, `asked` is what waits. */
  function push(latest, asked) {
    for (const [name, value] of latest) {
      const key = queueCategory(name) ? name : "";
      if (value > 0 && !(key in source.series)) source.series[key] = source.times.map(() => 0);
    }
    const rest = [...latest].reduce((sum, [name, value]) => sum + (name in source.series ? 0 : value), 0);
    source.times.push(present());
    for (const [name, values] of Object.entries(source.series)) values.push(name ? (latest.get(name) ?? values.at(-1)) : rest);
    source.asked?.push(asked ?? source.asked.at(-1));
    drawn.update();
  }
  return { push, chart: drawn.chart };
}
