// The card of one GPU: who has it, since when, how much of it, how busy it is, and what is wrong with it.
import { present } from "./clock.js";
import { isInUse, loadOf, sizeOf, WHOLE } from "./fleetdata.js";
import { amountWords, durationWords, fill, numberWords, shortModel } from "./words.js";

const MARKS = { allocated: "running", shared: "running", idle: "running", reserved: "inqueue", releasing: "terminating", unhealthy: "failed", cordoned: "aborted", not_ready: "unknown", unknown: "unknown" };
const percent = new Intl.NumberFormat(document.documentElement.lang, { style: "percent" });
const MOST_PARTS = 5;
const MIB = 2 ** 20;

/** Write the card of a GPU into `host`; `jobUrl` has UID where a job's own is to stand. The same in words is its result. */
export function drawCard(host, { node, gpu }, text, jobUrl) {
  const cell = node.cells[gpu];
  const title = document.createElement("h4");
  const name = element("span", fill(text.cell, { node: node.name, gpu }));
  title.append(name, element("span", shortModel(node.model), "ink3"));
  const rows = factsOf(node, cell, text, jobUrl);
  const list = element("dl", "", "ba-kv");
  for (const [word, value] of rows) {
    const dd = element("dd", "");
    dd.append(value);
    list.append(element("dt", word), dd);
  }
  host.replaceChildren(title, ...(cell.parts ? [partsBar(cell)] : []), list);
  return [name.textContent, ...rows.map(([word, value]) => `${word}: ${value.textContent ?? value}`)].join("; ");
}

function factsOf(node, cell, text, jobUrl) {
  const rows = [[text.state, stateMark(cell, text)]];
  if (cell.parts && cell.parts.length > 1) rows.push(...sharers(cell, text, jobUrl));
  else if (cell.holder) rows.push(...holderRows(cell.holder, text, jobUrl));
  if (node.memory) rows.push([text.memory, memoryWords(node, cell, text)]);
  if (isInUse(cell)) rows.push([text.load, loadWords(node, cell, text)]);
  if (["unhealthy", "cordoned", "not_ready", "unknown", "reserved"].includes(cell.state)) rows.push([text.cause, text.meanings[cell.state]]);
  if (cell.over) rows.push([text.cause, text.over]);
  return rows;
}

function holderRows(holder, text, jobUrl) {
  const rows = [];
  if (holder.since) rows.push([text.since, fill(text.sinceLong, { time: durationWords(present() / 1000 - holder.since) })]);
  rows.push([text.job, jobLink(holder, text, jobUrl)]);
  if (holder.task) rows.push([text.task, `${holder.task} ${holder.index}`]);
  if (holder.queue) rows.push([text.queue, holder.queue]);
  if (holder.user) rows.push([text.user, holder.user]);
  return rows;
}

function sharers(cell, text, jobUrl) {
  const rows = cell.parts.slice(0, MOST_PARTS).map(({ holder, size, instance }) => {
    const value = element("span", "");
    value.append(jobLink(holder, text, jobUrl), element("span", ` ${instance || percent.format(size / WHOLE)}`, "ink3"));
    return [text.job, value];
  });
  if (cell.parts.length > MOST_PARTS) rows.push([text.job, fill(text.more, { count: cell.parts.length - MOST_PARTS })]);
  const queues = new Set(cell.parts.map(({ holder }) => holder.queue));
  const users = new Set(cell.parts.map(({ holder }) => holder.user));
  rows.push([text.queue, queues.size === 1 ? [...queues][0] || "–" : text.various], [text.user, users.size === 1 ? [...users][0] || "–" : text.various]);
  return rows;
}

function jobLink(holder, text, jobUrl) {
  if (!holder.uid) return element("span", holder.job || text.inUse);
  const link = element("a", holder.job);
  link.href = jobUrl.replace("UID", encodeURIComponent(holder.uid));
  return link;
}

function memoryWords(node, cell, text) {
  const all = amountWords(node.memory * MIB, "memory");
  if (!isInUse(cell)) return all;
  const held = amountWords(Math.round((node.memory * sizeOf(cell)) / WHOLE) * MIB, "memory");
  const promised = sizeOf(cell) >= WHOLE ? all : fill(text.promised, { held, all });
  const used = loadOf(node, { load: cell.used }, present() / 1000);
  if (used === null) return promised;
  return `${promised} · ${fill(text.used, { used: amountWords(used * MIB, "memory") })}`;
}

function loadWords(node, cell, text) {
  const load = loadOf(node, cell, present() / 1000);
  return load === null ? element("span", text.unmeasured, "ink3") : percent.format(load / 100);
}

function partsBar(cell) {
  const bar = element("div", "", "hm-parts");
  bar.setAttribute("aria-hidden", "true");
  for (const { size } of cell.parts) {
    const part = element("i", "");
    part.style.setProperty("--w", `${size / 10}%`);
    bar.append(part);
  }
  return bar;
}

function stateMark(cell, text) {
  const word = text.states[cell.state];
  if (!(cell.state in MARKS)) return element("span", word); // free: nothing waits there
  const mark = element("span", "", "ba-st");
  mark.dataset.st = MARKS[cell.state];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "g");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#st-${MARKS[cell.state]}`);
  svg.append(use);
  mark.append(svg, cell.parts && cell.parts.length > 1 ? fill(text.pods, { state: word, count: numberWords(cell.parts.length) }) : word);
  return mark;
}

function element(tag, text, className = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}
