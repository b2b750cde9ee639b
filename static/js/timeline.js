// The timeline, live: the line of now moves and open bars grow with it; a change of any lane brings it anew from the server.
import { present } from "./clock.js";
import { durationWords, fill, words } from "./words.js";
import { clockOf, inZone } from "./zone.js";

let box, start, end;
const NARROW = 9; // percent of the axis that words need, as on the server
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000]; // seconds, as on the server

/** Take over the timeline that the page shows now; the server draws for no one moment, nor for the reader's time zone. */
export function adopt(isNew = true) {
  const before = end;
  box = document.querySelector("[data-timeline]");
  start = Number(box?.dataset.start);
  end = Number(box?.dataset.end);
  if (!isNew || !box) return;
  if (open() && before > end) end = before;
  drawTicks();
  relayout();
}

function place(at) {
  return `${Math.min(100, Math.max(0, (100 * (at - start)) / (end - start))).toFixed(3)}%`;
}

function open() {
  return box?.dataset.over === "no";
}

/** Move what depends on the present; when it leaves the axis, the axis grows. */
export function relayout() {
  if (!box || !open() || document.hidden) return;
  const now = present() / 1000;
  if (now > end) {
    end = now + (now - start) * 0.1;
    drawTicks();
  }
  box.querySelectorAll(".tl-bar").forEach((bar) => {
    const from = Number(bar.dataset.from);
    const to = Number(bar.dataset.to ?? now);
    bar.style.left = place(from);
    bar.style.width = `${Math.max(0, (100 * (Math.min(to, end) - from)) / (end - start)).toFixed(3)}%`;
    let label = bar.querySelector("span");
    if (!label) {
      label = document.createElement("span");
      label.textContent = bar.title;
      bar.append(label);
    }
    label.hidden = Number.parseFloat(bar.style.width) < NARROW;
    if (bar.dataset.to === undefined && bar.closest("[data-lane]").dataset.lane !== "scheduler") {
      const text = fill(words.span, { state: bar.dataset.word, duration: durationWords(now - from) });
      bar.title = text;
      label.textContent = text;
    }
  });
  box.querySelectorAll("[data-when]").forEach((point) => (point.style.left = place(Number(point.dataset.when))));
  box.querySelectorAll(".tl-area").forEach((area) => {
    area.style.left = place(Number(area.dataset.from));
    area.style.width = `${((100 * (Number(area.dataset.to) - Number(area.dataset.from))) / (end - start)).toFixed(3)}%`;
  });
  box.querySelectorAll("[data-now]").forEach((line) => (line.style.left = place(now)));
}

/** The axis anew: its step is the finest that gives at most eight ticks. */
function drawTicks() {
  const step = STEPS.find((each) => (end - start) / each <= 8) ?? STEPS.at(-1);
  const [h, m, s] = clockOf(start * 1000).split(":").map(Number);
  const midnight = Math.floor(start) - h * 3600 - m * 60 - s;
  const form = step < 60 ? { hour: "2-digit", minute: "2-digit", second: "2-digit" } : step < 86400 ? { hour: "2-digit", minute: "2-digit" } : { month: "2-digit", day: "2-digit" };
  const ticks = [];
  for (let at = midnight + step * Math.ceil((start - midnight) / step); at <= end; at += step) {
    if (Number.parseFloat(place(at)) <= 97) ticks.push(at);
  }
  const put = (name, parent, before, text) => {
    parent.querySelectorAll(`${name}[data-at]`).forEach((old) => old.remove());
    for (const at of ticks) {
      const tick = document.createElement(name);
      tick.dataset.at = at;
      tick.style.left = place(at);
      if (text) tick.textContent = inZone(at * 1000, form);
      parent.insertBefore(tick, before(parent));
    }
  };
  put("span", box.querySelector(".tl-axis"), () => null, true);
  box.querySelectorAll(".tl-bars").forEach((bars) => put("s", bars, (parent) => parent.querySelector(".tl-area, .tl-bar, .tl-point, [data-now]"), false));
}

adopt(false);
