// The handle below a chart over time: it picks a past minute, by pointer or by keys, and what is told of it is loaded.
import { inZone } from "./zone.js";

const MINUTE = 60_000;
const THUMB = 14; // px, as the style sheet has it
const PAUSE = 250; // ms without a further step, after which a minute that was reached by keys is loaded

/** Let the handle of the chart in `box` pick a minute. */
export function scrub(chart, box) {
  const handle = document.getElementById("scrub");
  const cursor = handle?.parentElement.querySelector(".sh-cursor");
  if (!handle) return;
  let waiting = 0;
  let picked = handle.dataset.at ? Date.parse(handle.dataset.at) : null;

  const words = (at) => inZone(at, { dateStyle: "medium", timeStyle: "short" });
  const x = (at) => chart.convertToPixel({ xAxisIndex: 0 }, at);

  /** The handle runs along the chart's own axis, whose ends move as time goes on. */
  function align() {
    const { min, max } = chart.getOption().xAxis[0];
    if (!(max > min)) return;
    handle.min = Math.ceil(min / MINUTE) * MINUTE;
    handle.max = Math.floor(max / MINUTE) * MINUTE;
    handle.style.left = `${x(Number(handle.min)) - THUMB / 2}px`; // its middle runs from end to end, not its edges
    handle.style.width = `${x(Number(handle.max)) - x(Number(handle.min)) + THUMB}px`;
    handle.value = picked ?? handle.max;
    point();
  }

  function point() {
    cursor.hidden = picked === null || picked < Number(handle.min);
    if (!cursor.hidden) cursor.style.left = `${x(picked)}px`;
    handle.setAttribute("aria-valuetext", words(Number(handle.value)));
  }

  function pick(at) {
    picked = Math.floor(at / MINUTE) * MINUTE;
    handle.value = picked;
    point();
    clearTimeout(waiting);
    waiting = setTimeout(() => load(picked), PAUSE);
  }

  async function load(at) {
    const address = new URL(location.href);
    address.searchParams.set("at", new Date(at).toISOString());
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("moment");
    if (!fresh || at !== picked) return;
    document.getElementById("moment").replaceWith(fresh);
    history.replaceState(history.state, "", address);
  }

  chart.on("finished", align);
  align();
  handle.addEventListener("input", () => pick(Number(handle.value)));
  handle.addEventListener("keydown", (event) => {
    const step = { PageUp: 10, PageDown: -10 }[event.key];
    if (!step) return;
    event.preventDefault();
    pick(Math.min(Number(handle.max), Math.max(Number(handle.min), Number(handle.value) + step * MINUTE)));
  });
  chart.getZr().on("click", ({ offsetX, offsetY }) => {
    if (chart.containPixel("grid", [offsetX, offsetY])) pick(chart.convertFromPixel({ xAxisIndex: 0 }, offsetX));
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("#moment a[data-step]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const at = Date.parse(new URL(link.href).searchParams.get("at"));
    if (!(at >= Number(handle.min) && at <= Number(handle.max))) return; // the chart must move: a page of its own
    event.preventDefault();
    pick(at);
  });
}
