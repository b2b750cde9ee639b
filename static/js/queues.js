// The queue tree, live: what changed is added up over the tree again and put into the bars; nothing else moves.
import { subscribe } from "./live.js";
import { isChanged, isNew } from "./news.js";
import { amountWords, fill, numberWords } from "./words.js";

const holder = document.getElementById("tree-data");
if (holder) {
  const { resources, total, queues, order } = JSON.parse(holder.textContent);
  const rows = new Map(queues.map((queue) => [queue.name, queue]));
  const lines = new Map([...document.querySelectorAll("[data-tree] tbody tr")].map((line) => [line.dataset.queue, line]));
  const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

  // order and depth say who is below whom, as the server placed them; a filter shows only some of the lines
  const tree = order.map(([name, depth]) => ({ line: lines.get(name), name, depth, below: [] }));
  tree.forEach((node, at) => {
    for (let above = at - 1; above >= 0; above -= 1) {
      if (tree[above].depth < node.depth) {
        tree[above].below.push(node);
        break;
      }
    }
  });

  // Whoever points at a bar reads it in words.
  document.querySelector("[data-tree]").addEventListener("mouseover", (event) => {
    const share = event.target.closest(".ba-share");
    if (share) share.title = share.getAttribute("aria-label");
  });

  subscribe("queues", {
    onMessage(message) {
      for (const row of message.changed ?? []) {
        const before = rows.get(row.name);
        if (!before) isNew(row.name);
        else {
          if (before.state !== row.state || before.parent !== row.parent) isChanged();
          rows.set(row.name, row);
        }
      }
      if ((message.gone ?? []).some((name) => rows.has(name))) isChanged();
      if (message.changed?.length) draw();
    },
  });

  function draw() {
    for (const node of [...tree].reverse()) measure(node);
    const scales = new Map();
    for (const node of tree) {
      node.bars.forEach((bar, at) => {
        const key = `${node.depth} ${at}`;
        scales.set(key, Math.max(scales.get(key) ?? 0, bar.guarantee, bar.deserved, bar.admitted, bar.capability ?? 0));
      });
    }
    for (const node of tree) {
      if (!node.line) continue;
      const shares = node.line.querySelectorAll(".ba-share");
      node.bars.forEach((bar, at) => paint(node, shares[at], bar, scales.get(`${node.depth} ${at}`), resources[at]));
      put(node.line.querySelector("[data-part=running]"), numberWords(node.running));
      put(node.line.querySelector("[data-part=waiting]"), numberWords(node.waiting));
    }
  }

  function measure(node) {
    const row = rows.get(node.name);
    const root = node.name === "root";
    const sum = (part) => node.below.reduce((all, child) => all + child[part], 0);
    node.running = row.groups_running + sum("running");
    node.waiting = row.groups_pending + row.groups_inqueue + sum("waiting");
    node.bars = resources.map((name, at) => {
      const children = (part) => node.below.reduce((all, { bars }) => all + bars[at][part], 0);
      const allocated = Math.max(row.allocated[name] ?? 0, children("allocated"));
      const admitted = allocated + Math.max(row.inqueue?.[name] ?? 0, children("admitted") - children("allocated"));
      const guarantee = row.guarantee[name] ?? 0;
      return {
        allocated, admitted,
        guarantee: root ? Math.max(guarantee, children("guarantee")) : guarantee,
        deserved: root ? total[name] : (row.deserved[name] ?? row.deserved_spec[name] ?? 0) || children("deserved"),
        request: Math.max(row.request?.[name] ?? 0, children("request")),
        capability: root ? total[name] : row.capability[name],
        get pending() {
          return Math.max(0, this.request - this.admitted);
        },
      };
    });
  }

  function paint(node, share, bar, scale, resource) {
    const full = scale || 1;
    const width = (value) => `${Math.min(100, (100 * value) / full).toFixed(2)}%`;
    const parts = { cap: bar.capability ?? full, gua: bar.guarantee, des: bar.deserved, alc: bar.allocated, adm: bar.admitted };
    for (const [name, value] of Object.entries(parts)) share.style.setProperty(`--${name}`, width(value));
    layer(share, "bor", bar.deserved && bar.allocated > bar.deserved);
    layer(share, "adm", bar.admitted > bar.allocated);
    layer(share, "gua", bar.guarantee);
    layer(share, "des", bar.deserved);
    const amounts = Object.fromEntries(Object.entries(bar).map(([name, value]) => [name, amountWords(value ?? 0, resource)]));
    const { label, labelFree } = share.closest("table").dataset;
    share.setAttribute("aria-label", fill(bar.capability === undefined ? labelFree : label, { queue: node.name, ...amounts }));
    const figures = share.parentElement.querySelector(".n");
    if (figures) {
      const key = `${bar.allocated}/${bar.deserved}`;
      if (figures.dataset.key === key) return;
      const first = figures.dataset.key === undefined;
      figures.dataset.key = key;
      const before = figures.textContent;
      figures.replaceChildren(...(bar.allocated || bar.deserved ? pair(node, bar, resource) : [rows.get(node.name).request ? "0" : "–"]));
      if (!first || before !== figures.textContent) flash(figures.closest("td"));
      return;
    }
    put(node.line.querySelector("[data-part=deserved]"), deserved(node, bar, resource));
    for (const part of rows.get(node.name).request ? ["allocated", "admitted", "pending"] : ["allocated"]) put(node.line.querySelector(`[data-part=${part}]`), amount(bar[part], resource));
  }

  function layer(share, name, there) {
    const found = share.querySelector(`.${name}`);
    if (!there) found?.remove();
    else if (!found) share.append(Object.assign(document.createElement("i"), { className: name }));
  }

  /** Allocated and deserved in one unit, that of the larger, as the server writes them. */
  function pair(node, bar, resource) {
    const bold = document.createElement("b");
    const told = bar.deserved || rows.get(node.name).request;
    const [, unit] = amount(Math.max(bar.allocated, bar.deserved), resource);
    if (!unit) {
      bold.append(...amount(bar.allocated, resource));
      return [bold, "/", ...(told ? amount(bar.deserved, resource) : ["–"])];
    }
    const step = 1024 ** BYTES.indexOf(unit.textContent);
    const least = Math.min(bar.allocated, bar.deserved);
    if (least > 0 && least < 0.05 * step) { // too little to be told in that unit
      bold.append(amountWords(bar.allocated, resource));
      return [bold, "/", amountWords(bar.deserved, resource)];
    }
    bold.append(numberWords(bar.allocated / step));
    return [bold, "/", told ? numberWords(bar.deserved / step) : "–", unit];
  }

  // Where another scheduler serves the cluster, what a queue deserves is known only if its spec says so.
  function deserved(node, bar, resource) {
    return bar.deserved || rows.get(node.name).request ? amount(bar.deserved, resource) : ["–"];
  }

  function put(place, content) {
    const parts = Array.isArray(content) ? content : [String(content)];
    const text = parts.map((part) => part.textContent ?? part).join("");
    if (place.textContent === text) return;
    place.replaceChildren(...parts);
    flash(place.closest("td"));
  }

  function flash(cell) {
    cell.removeAttribute("data-changed");
    requestAnimationFrame(() => cell.setAttribute("data-changed", ""));
  }

  /** As the server writes it: number, and unit set small. */
  function amount(units, resource) {
    if (!["memory", "ephemeral-storage"].includes(resource)) return [numberWords(resource === "pods" ? units : units / 1000)];
    let value = units;
    let step = 0;
    while (Math.abs(value) >= 1024 && step < BYTES.length - 1) {
      value /= 1024;
      step += 1;
    }
    const unit = document.createElement("span");
    unit.className = "u";
    unit.textContent = BYTES[step];
    return [numberWords(value), unit];
  }
}
