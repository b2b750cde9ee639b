// The legend of a fleet's map: what each colour is, how many GPUs have it, and a press that leaves only those bright.
import { MEASURES } from "./fleetlook.js";
import { numberWords, shortModel } from "./words.js";

const percent = new Intl.NumberFormat(document.documentElement.lang, { style: "percent" });

/** Write the legend of a look into `host`; `only` is the key that is pressed, `text` the words. */
export function drawLegend(host, look, only, text) {
  const focused = host.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  if (MEASURES.has(look.mode)) drawRamp(host, look, only, text);
  else if (look.mode === "state") drawStates(host, look, only, text);
  else drawValues(host, look, only, text);
  if (focused !== undefined) host.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

function drawStates(host, look, only, text) {
  const shown = Object.keys(text.states).filter((state) => look.counts.get(state) || state === "allocated" || state === "free");
  host.replaceChildren(...shown.map((state) => entry(state, swatch("state", state), text.states[state], look.counts.get(state) ?? 0, only, text.meanings[state])));
}

function drawRamp(host, look, only, text) {
  const steps = [...Array(7).keys()].map((at) => {
    const made = entry(String(at), swatch("ramp", at), "", look.counts.get(String(at)) ?? 0, only, `${percent.format(at / 7)} – ${percent.format((at + 1) / 7)}`);
    made.classList.add("hm-step");
    return made;
  });
  const items = [note(percent.format(0)), ...steps, note(percent.format(1)), note(text.outlined)];
  const unmeasured = look.counts.get("unmeasured") ?? 0;
  if (unmeasured) items.push(entry("unmeasured", swatch("state", "unmeasured"), text.unmeasured, unmeasured, only));
  if (look.mode === "load" && unmeasured && look.counts.size === 1) items.push(note(text.noLoad));
  host.replaceChildren(...items);
}

function drawValues(host, look, only, text) {
  const count = (key) => look.counts.get(key) ?? 0;
  const items = [...look.ranks].map(([key, at]) => entry(key, swatch("cat", at), look.mode === "model" ? shortModel(key) : key, count(key), only, key));
  const rest = [...look.counts].reduce((sum, [key, number]) => sum + (look.ranks.has(key) ? 0 : number), 0);
  if (rest) items.push(entry("", swatch("cat", 0), text.others, rest, only));
  const said = look.mode === "model" ? text.lighter : items.length ? "" : text.idle;
  if (said) items.push(note(said));
  host.replaceChildren(...items);
}

/** The cells that a press on an entry leaves bright; null: all. */
export function onlyFilter(look, only) {
  if (only === null) return null;
  if (only === "" && !MEASURES.has(look.mode)) return (node, cell) => look.keysOf(node, cell).some((key) => !look.ranks.has(key));
  return (node, cell) => look.keysOf(node, cell).includes(only);
}

function entry(key, mark, label, count, only, title = "") {
  const item = document.createElement("button");
  item.type = "button";
  item.className = "hm-key";
  item.dataset.key = key;
  item.setAttribute("aria-pressed", String(key === only));
  if (title) item.title = title;
  const number = numberWords(count);
  if (label) {
    const name = document.createElement("span");
    name.className = "name";
    name.textContent = label;
    const value = document.createElement("b");
    value.textContent = number;
    item.append(mark, name, " ", value);
  } else {
    item.append(mark);
    item.setAttribute("aria-label", `${title}: ${number}`);
    item.title = item.getAttribute("aria-label");
  }
  return item;
}

function swatch(name, value) {
  const mark = document.createElement("i");
  mark.className = "hm-sw";
  mark.setAttribute("aria-hidden", "true");
  mark.dataset[name] = value;
  return mark;
}

const note = (text) => Object.assign(document.createElement("span"), { className: "ink3", textContent: text });
