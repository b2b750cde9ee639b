// A job's log: one request brings what is there and then what comes. Only the blocks of lines near the window are in the page.
import { fill, numberWords, words } from "./words.js";

const place = document.querySelector("[data-logs]");
const view = place?.querySelector("[data-log-view]");

const BLOCK = 200; // lines
const HEIGHT = 18; // of a line that is not wrapped
const COLOURS = 6;
const MOST = 300_000; // lines that are kept in the page
const LONGEST = 2_000; // characters of a line that are drawn at once

const lines = []; // {source, at, error, piece, text}
const sources = new Map();
let blocks = []; // {element, shown: [lines], drawn}
let matching = 0;
let needle = "";
let isPaused = false;
let isFirst = true;
let waiting = [];
let dropped = 0;

const find = (name) => place.querySelector(`[data-log-${name}]`);

function drawLine(line) {
  const row = document.createElement("div");
  row.className = `lg-l c${(line.source % COLOURS) + 1}${line.error ? " e" : ""}${line.piece ? " p" : ""}`;
  const source = sources.get(line.source);
  const time = document.createElement("time");
  time.textContent = timeWords(line.at);
  time.dateTime = line.at;
  const pod = document.createElement("b");
  pod.textContent = source.pod;
  pod.title = source.container;
  const text = document.createElement("span");
  drawText(text, line.text.length > LONGEST ? `${line.text.slice(0, LONGEST)} …` : line.text);
  row.append(time, pod, text);
  return row;
}

/** An instant in the reader's zone, to the millisecond. */
function timeWords(at) {
  const local = new Date(at);
  const two = (value) => String(value).padStart(2, "0");
  return `${two(local.getHours())}:${two(local.getMinutes())}:${two(local.getSeconds())}.${at.slice(20, 23)}`;
}

function drawText(element, text) {
  if (!needle) {
    element.textContent = text;
    return;
  }
  const low = text.toLowerCase();
  let from = 0;
  for (let at = low.indexOf(needle); at >= 0; at = low.indexOf(needle, from)) {
    const hit = document.createElement("mark");
    hit.textContent = text.slice(at, at + needle.length);
    element.append(text.slice(from, at), hit);
    from = at + needle.length;
  }
  element.append(text.slice(from));
}

function draw(block) {
  if (block.drawn === block.shown.length) return;
  if (block.drawn > 0) {
    block.element.append(...block.shown.slice(block.drawn).map(drawLine));
  } else {
    block.element.replaceChildren(...block.shown.map(drawLine));
  }
  block.drawn = block.shown.length;
  block.element.style.height = "";
}

function erase(block) {
  if (!block.drawn) return;
  block.element.style.height = `${block.element.offsetHeight}px`;
  block.element.replaceChildren();
  block.drawn = 0;
}

const seen = new WeakMap();
const watch = view && new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      const block = seen.get(entry.target);
      if (!block) continue;
      block.near = entry.isIntersecting;
      if (block.near) draw(block);
      else erase(block);
    }
  },
  { root: view, rootMargin: "900px 0px" },
);

function addBlock() {
  const element = document.createElement("div");
  element.className = "lg-b";
  const block = { element, shown: [], drawn: 0, near: false };
  seen.set(element, block);
  blocks.push(block);
  view.append(element);
  watch.observe(element);
  return block;
}

function put(line) {
  const last = blocks.at(-1);
  const block = last && last.shown.length < BLOCK ? last : addBlock();
  block.shown.push(line);
  matching += 1;
  return block;
}

/** Lines that came: those that match are put at the end, and the window stays there when it was. */
function append(found) {
  const atEnd = isFirst || view.scrollHeight - view.scrollTop - view.clientHeight < 40;
  if (isFirst && found.length) {
    view.replaceChildren();
    isFirst = false;
  }
  const touched = new Set();
  for (const line of found) {
    lines.push(line);
    if (!needle || line.text.toLowerCase().includes(needle)) touched.add(put(line));
  }
  for (const block of touched) {
    if (block.near) draw(block);
    else block.element.style.height = `${block.shown.length * HEIGHT}px`;
  }
  forget();
  if (atEnd) view.scrollTop = view.scrollHeight;
  tell();
}

function forget() {
  if (lines.length <= MOST || needle) return;
  while (lines.length > MOST - BLOCK && blocks.length > 1) {
    const first = blocks.shift();
    watch.unobserve(first.element);
    view.scrollTop -= first.element.offsetHeight;
    first.element.remove();
    lines.splice(0, first.shown.length);
    matching -= first.shown.length;
    dropped += first.shown.length;
  }
}

/** Everything anew: the search has changed. */
function rebuild() {
  for (const block of blocks) watch.unobserve(block.element);
  blocks = [];
  matching = 0;
  view.replaceChildren();
  const touched = new Set();
  for (const line of lines) if (!needle || line.text.toLowerCase().includes(needle)) touched.add(put(line));
  for (const block of touched) block.element.style.height = `${block.shown.length * HEIGHT}px`;
  view.scrollTop = view.scrollHeight;
  tell();
}

function tell() {
  const all = numberWords(lines.length + dropped);
  find("count").textContent = needle
    ? fill(words.logMatches, { n: numberWords(matching), all })
    : fill(words.logLines, { n: all });
  find("none").hidden = lines.length > 0;
  if (isPaused && waiting.length) find("count").textContent += ` · ${fill(words.new, { count: numberWords(waiting.length) })}`;
}

function say(text) {
  if (text) find("state").textContent = text;
}

function take(message) {
  for (const source of message.sources ?? []) {
    sources.set(source.id, source);
    if (source.cut) say(words.logCut);
  }
  view.toggleAttribute("data-one", sources.size === 1);
  if (message.lines) {
    const found = message.lines.map(([source, at, stream, full, text]) => ({ source, at, error: stream === "e", piece: !full, text }));
    if (isPaused) waiting.push(...found);
    else append(found);
    if (isPaused) tell();
  }
  if (message.end) say({ over: words.logOver, refused: words.logRefused }[message.end]);
  return message.end;
}

/** Read the one answer, line by line, as long as it lasts; begin anew when it breaks off. */
async function follow(address) {
  let end = "";
  try {
    const answer = await fetch(address, { headers: { Accept: "application/x-ndjson" } });
    if (!answer.ok) {
      say({ 401: words.signedOut, 403: words.signedOut, 429: words.logBusy }[answer.status] ?? words.logBroken);
      return;
    }
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const texts = (rest + value).split("\n");
      rest = texts.pop();
      for (const text of texts) if (text) end = take(JSON.parse(text)) ?? end;
    }
  } catch {
    end = "";
  }
  if (end) return;
  say(words.logBroken);
  setTimeout(() => again(address), 3000);
}

/** After a break the newest instant says from where on. */
function again(address) {
  const url = new URL(address, location.href);
  const last = [...lines, ...waiting].at(-1);
  if (last) {
    url.searchParams.delete("tailLines");
    url.searchParams.set("sinceTime", new Date(Date.parse(last.at) + 1).toISOString());
  }
  sources.clear();
  follow(url.href);
}

function toggle(name, attribute) {
  const button = find(name);
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    view.toggleAttribute(attribute, on);
  });
}

if (view) {
  view.scrollTop = view.scrollHeight;
  toggle("wrap", "data-wrap");
  toggle("times", "data-times");
  find("pause").addEventListener("click", (event) => {
    isPaused = !isPaused;
    event.currentTarget.setAttribute("aria-pressed", String(isPaused));
    if (!isPaused && waiting.length) {
      append(waiting);
      waiting = [];
    }
    tell();
  });
  let typing = 0;
  find("search").addEventListener("input", (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      needle = event.target.value.trim().toLowerCase();
      if (!isFirst) rebuild();
    }, 150);
  });
  for (const choice of place.querySelectorAll("select, [name=previous]")) choice.addEventListener("change", () => choice.form.requestSubmit());
  if (place.dataset.stream) follow(place.dataset.stream);
}
