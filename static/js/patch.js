// Patches what the server rendered from a row of the live channel; nothing is redrawn.
//
//   <tr data-uid="…">            the row's own element
//     <td data-field="running"   the row's key
//         data-as="number">      how it is written: text (default), number, count, duration, since, start, state, why, width, amount
//
// `width` sets --w to the value's part of `data-of`; `up` and `upwidth` count a job's pods that run or have succeeded; `amount` uses `data-resource`, `count` the forms `data-one` and `data-many`; `since` makes a <time> that counts on.
// A value that changed gets `data-changed` for a moment, which the style fades.
import { present } from "./clock.js";
import { amountWords, durationWords, fill, language, numberWords, stateWord } from "./words.js";

const FADE = 1300;

/** Write one row into `element` and below it. */
export function patch(element, row) {
  const fields = element.matches("[data-field]") ? [element] : [];
  for (const target of [...fields, ...element.querySelectorAll("[data-field]")]) {
    const key = target.dataset.field;
    if (key in row) write(target, row[key], row);
  }
}

function write(target, value, row) {
  const as = target.dataset.as ?? "text";
  if (as.endsWith("width")) {
    const size = as === "upwidth" ? up(row) : (value ?? 0);
    const part = `${Math.min(100, (100 * size) / (Number(target.dataset.of) || 1)).toFixed(2)}%`;
    if (target.style.getPropertyValue("--w") !== part) target.style.setProperty("--w", part);
    return;
  }
  if (as === "state") return writeState(target, row);
  if (as === "since") return writeSince(target, value);
  if (as === "start") return value === "Pending" ? undefined : target.replaceChildren(); // what was foretold is past
  const text = as === "up" ? numberWords(up(row)) : say(as, value, target);
  if (target.textContent.trim() === text) return;
  target.textContent = text;
  if (as === "why") target.title = text;
  flag(target);
}

function say(as, value, target) {
  if (as === "why") return value?.[language] ?? value?.en ?? "";
  if (value === null || value === undefined || value === "") return "–";
  if (as === "number") return numberWords(value);
  if (as === "duration") return durationWords(value);
  if (as === "count") return fill(value === 1 ? target.dataset.one : target.dataset.many, { n: numberWords(value) });
  if (as === "amount") return amountWords(value, target.dataset.resource ?? "");
  return String(value);
}

/** Pods of a job that run or have succeeded. */
function up(row) {
  return (row.running ?? 0) + (row.succeeded ?? 0);
}

/** Show a state: its mark, its word, its colour. */
function writeState(target, row) {
  const shown = target.matches(".ba-st") ? target : target.querySelector(".ba-st");
  const word = stateWord(row.phase, row.mark);
  if (!shown || (shown.dataset.st === row.mark && shown.querySelector("[data-word]").textContent === word)) return;
  shown.dataset.st = row.mark;
  shown.querySelector("use").setAttribute("href", `#st-${row.mark}`);
  shown.querySelector("[data-word]").textContent = word;
  flag(target);
}

function writeSince(target, value) {
  const time = target.matches("time") ? target : target.querySelector("time");
  if (!time || !value || Date.parse(time.dateTime) === Date.parse(value)) return;
  time.dateTime = value;
  time.textContent = durationWords((present() - Date.parse(value)) / 1000);
}

/** Mark an element as just changed. */
export function flag(element) {
  element.removeAttribute("data-changed");
  void element.offsetWidth; // restarts the fade
  element.setAttribute("data-changed", "");
  setTimeout(() => element.removeAttribute("data-changed"), FADE);
}
