// One job, live: head, verdict, pods, events and timeline follow the job's own topic.
import { adopt, relayout } from "./timeline.js";
import { present } from "./clock.js";
import { subscribe } from "./live.js";
import { settle } from "./unblock.js";
import { flag, patch } from "./patch.js";
import { language, numberWords, runs, stateWord, words } from "./words.js";
import { clockOf, dayOf, titleOf } from "./zone.js";

const page = document.querySelector("[data-job]");

function cellMark(pod) {
  if (pod.deleted_at && !pod.finished_at) return "aborted";
  return pod.phase === "Pending" && pod.node ? "inqueue" : pod.mark;
}

function patchCell(pod) {
  const row = page.querySelector(`.cells[data-task="${CSS.escape(pod.task)}"]`);
  const cell = row?.querySelector(`[data-index="${pod.index}"]`);
  if (!cell || (pod.deleted_at && cell.dataset.uid !== pod.uid)) return;
  const mark = cellMark(pod);
  const changed = cell.dataset.st !== mark;
  cell.dataset.uid = pod.uid;
  cell.dataset.st = mark;
  cell.classList.toggle("no", !pod.node);
  cell.title = [pod.name, pod.node || words.noNode, pod.reason].filter(Boolean).join("\n");
  if (cell.matches(".ba-pod")) {
    cell.querySelector("use").setAttribute("href", `#st-${mark}`);
    writeNode(cell.querySelector("[data-node]"), pod.node, words.noNode);
    cell.querySelector("[data-gpus]").textContent = runs(pod.gpus ?? []);
    cell.querySelector("[data-word]").textContent = stateWord(pod.phase, mark);
  }
  if (changed) flag(cell);
}

/** A node's name leads to its page. */
function writeNode(place, node, none) {
  if (place.textContent.trim() === (node || none)) return;
  const link = element(node ? "a" : "span", node ? "ink2" : "ink3", node || none);
  if (node) link.href = `${page.dataset.nodes}${encodeURIComponent(node)}/`;
  place.replaceChildren(link);
}

function patchPods(pods) {
  for (const pod of pods) {
    patchCell(pod);
    const row = page.querySelector(`[data-pods] tr[data-uid="${CSS.escape(pod.uid)}"]`);
    if (!row) continue;
    patch(row, pod);
    writeNode(row.querySelector("[data-place]"), pod.node, "–");
  }
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** What an event says: in the page's language where its words are ours, else as it was written, marked as English. */
function told(event) {
  const text = event.words?.[language];
  const made = element("span", "", text ?? event.message);
  if (text === undefined) made.lang = "en";
  return made;
}

function eventRow(event, wide) {
  const row = element("tr");
  row.dataset.uid = event.uid;
  const mark = element("td");
  const warning = event.type === "Warning";
  mark.innerHTML = `<span class="ba-st" data-st="${warning ? "pending" : "completed"}"><svg class="g" aria-hidden="true"><use href="#st-${warning ? "pending" : "completed"}"/></svg><span class="vh"></span></span>`;
  mark.querySelector(".vh").textContent = event.type;
  const time = element("td", "ink3", clockOf(event.last_seen));
  time.title = titleOf(event.last_seen);
  const message = element("td", wide ? "wrapped" : "");
  if (wide) {
    message.append(told(event));
    const about = element("td", "ink2", `${event.about_kind} ${event.about_name}`);
    row.append(time, mark, element("td", "b", event.reason), about, element("td", "num", numberWords(event.count)), message);
  } else {
    message.append(element("b", "", event.reason), " ", told(event));
    if (event.count > 1) message.append(" ", element("span", "ink3", `×${numberWords(event.count)}`));
    row.append(time, mark, message);
  }
  return row;
}

function patchEvents(events) {
  const table = page.querySelector("[data-events]");
  if (!table || !events.length) return;
  const body = table.tBodies[0];
  const wide = table.tHead !== null;
  for (const event of events) {
    const at = Date.parse(event.last_seen) / 1000;
    const old = body.querySelector(`tr[data-uid="${CSS.escape(event.uid)}"]`);
    if (old && Number(old.dataset.count) === event.count && Number(old.dataset.at) >= Math.floor(at)) continue;
    old?.remove();
    body.querySelector("tr:not([data-uid])")?.remove();
    const row = eventRow(event, wide);
    row.dataset.at = at;
    row.dataset.count = event.count;
    body.insertBefore(row, [...body.rows].find((other) => Number(other.dataset.at) <= at) ?? null);
  }
  while (body.rows.length > Number(table.dataset.limit)) body.lastElementChild.remove();
}

/** The panel that says why the job waits comes whole, in the page's language; the numbers that moved are marked. */
function patchWhy(html) {
  const place = page.querySelector("[data-why-panel]");
  if (!place || place.dataset.shown === html) return;
  place.dataset.shown = html;
  const before = new Map([...place.querySelectorAll("[data-sum]")].map((figure) => [figure.dataset.sum, figure.textContent]));
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  place.innerHTML = html;
  settle();
  for (const figure of place.querySelectorAll("[data-sum]")) {
    if (before.has(figure.dataset.sum) && before.get(figure.dataset.sum) !== figure.textContent) flag(figure);
  }
  if (focused) place.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  showNote();
}

/** A part of the page that comes whole. Its times are put into the reader's zone, which the server's thread does not know. */
function patchPart(name, html) {
  const place = page.querySelector(`[data-part="${name}"]`);
  if (!place || place.dataset.shown === html) return;
  const isFirst = place.dataset.shown === undefined;
  place.dataset.shown = html;
  if (isFirst && name !== "timeline" && sameText(place, html)) return;
  const open = [...place.querySelectorAll("details[open]")].map((each) => each.className);
  place.innerHTML = html;
  for (const each of place.querySelectorAll("details")) each.open = open.includes(each.className);
  for (const time of place.querySelectorAll("time:not([data-since])")) time.textContent = clockWords(time.dateTime);
  if (name === "timeline") adopt();
}

function sameText(place, html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  return made.content.textContent.trim() === place.textContent.trim();
}

/** An instant as the server writes it: with its day when that is not today. */
function clockWords(stamp) {
  return dayOf(stamp) === dayOf(present()) ? clockOf(stamp) : `${dayOf(stamp)} ${clockOf(stamp)}`;
}

/** The one line is for what the panel does not say. */
function showNote() {
  const note = page.querySelector("[data-note]");
  if (note) note.hidden = page.querySelector("[data-why-panel]").childElementCount > 0 || !note.textContent.trim();
}

const knownEvents = new Set();

/** The tabs say how many there are. */
function count(part, number) {
  page.querySelector(`[data-tab-count="${part}"]`).textContent = numberWords(number);
}

function countEvents(rows) {
  rows.forEach((row) => knownEvents.add(row.uid));
  count("events", knownEvents.size);
}

function patchActions(row) {
  page.querySelectorAll("[data-phases]").forEach((action) => {
    action.hidden = !action.dataset.phases.split(" ").includes(row.phase);
  });
}

subscribe(`job:${page.dataset.uid}`, {
  uids: () => [page.dataset.uid, ...[...page.querySelectorAll("[data-pods] tr[data-uid]")].map((row) => row.dataset.uid)],
  onMessage(message) {
    for (const row of message.changed ?? []) {
      patch(page.querySelector(".ba-head"), row);
      patch(page.querySelector(".ba-facts"), row);
      const note = page.querySelector("[data-note]");
      if (note) patch(note, row);
      patchActions(row);
      showNote();
    }
    for (const { html } of message.why ?? []) patchWhy(html[language] ?? html.en);
    patchPods(message.pods ?? []);
    patchEvents(message.events ?? []);
    if (message.pods_total !== undefined) count("pods", message.pods_total);
    if (message.events) countEvents(message.events);
    for (const { uid, html } of message.parts ?? []) patchPart(uid, html[language] ?? html.en);
    if ((message.gone ?? []).includes(page.dataset.uid)) page.querySelector("[data-gone]").hidden = false;
  },
});

setInterval(relayout, 1000);
