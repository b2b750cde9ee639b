// The timeline, live: the line of now moves, open bars grow with it, and a new phase begins a bar of its own.
import { present } from "./clock.js";
import { durationWords, fill, language, stateWord, words } from "./words.js";

const box = document.querySelector("[data-timeline]");
const lane = box?.querySelector("[data-lane=job]");
const start = Number(box?.dataset.start);
let end = Number(box?.dataset.end);
const marks = { Running: "running", Restarting: "restarting", Completed: "completed", Failed: "failed", Aborted: "aborted", Terminated: "aborted" };
const NARROW = 9; // percent of the axis that words need, as on the server
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000]; // seconds, as on the server
const finals = ["Completed", "Failed", "Terminated"];

function place(at) {
  return `${Math.min(100, Math.max(0, (100 * (at - start)) / (end - start))).toFixed(3)}%`;
}

function open() {
  return box?.dataset.over === "no";
}

/** Move what depends on the present; when it leaves the axis, the axis grows. */
export function relayout() {
  if (!open() || document.hidden) return;
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
    const label = bar.querySelector("span");
    if (label) label.hidden = Number.parseFloat(bar.style.width) < NARROW;
    if (bar.dataset.to === undefined) {
      const text = fill(words.span, { state: bar.dataset.word, duration: durationWords(now - from) });
      bar.title = text;
      if (label) label.textContent = text;
    }
  });
  box.querySelectorAll("[data-now]").forEach((line) => (line.style.left = place(now)));
}

/** The axis anew: its step is the finest that gives at most eight ticks. */
function drawTicks() {
  const step = STEPS.find((each) => (end - start) / each <= 8) ?? STEPS.at(-1);
  const midnight = new Date(start * 1000).setHours(0, 0, 0, 0) / 1000;
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
      if (text) tick.textContent = new Date(at * 1000).toLocaleString(language, { hour12: false, ...form });
      parent.insertBefore(tick, before(parent));
    }
  };
  put("span", box.querySelector(".tl-axis"), () => null, true);
  box.querySelectorAll(".tl-bars").forEach((bars) => put("s", bars, (parent) => parent.querySelector(".tl-bar, [data-now]"), false));
}

/** Begin a bar for each change that is new. */
export function append(changes) {
  if (!open() || !lane) return;
  for (const change of changes) {
    const at = Date.parse(change.at) / 1000;
    const last = [...lane.querySelectorAll(".tl-bar")].at(-1);
    if (last && at <= Number(last.dataset.from)) continue;
    const mark = change.phase === "Pending" ? (["Inqueue", "Running"].includes(change.group_phase) ? "inqueue" : "pending") : (marks[change.phase] ?? "terminating");
    if (last && last.dataset.st === mark && last.dataset.phase === change.phase) continue;
    if (last && last.dataset.to === undefined) last.dataset.to = at;
    const bar = document.createElement("i");
    bar.className = "tl-bar";
    bar.dataset.st = mark;
    bar.dataset.phase = change.phase;
    bar.dataset.from = at;
    bar.dataset.word = stateWord(change.phase, mark);
    bar.append(document.createElement("span"));
    lane.append(bar);
    if (finals.includes(change.phase)) {
      bar.dataset.to = at;
      relayout();
      box.dataset.over = "yes";
    }
  }
  relayout();
}
