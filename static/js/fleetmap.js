// The fleet on canvas: spine > rack > node > GPU. One canvas a row of racks ("band"), painted when it comes into view,
// so that a fleet of any size costs only what is seen. A change repaints its own cells and nothing else.
import { paintCell, palette } from "./gpucell.js";

const FADE = 240;
const still = matchMedia("(prefers-reduced-motion: reduce)");
const DENSITIES = [
  { upTo: 400, ch: 18, min: 9, max: 36, label: true, head: 18, pitch: 3, columns: 230 },
  { upTo: 2500, ch: 13, min: 9, max: 36, label: true, head: 18, pitch: 2, columns: 230 },
  { upTo: 12000, ch: 9, min: 6, max: 16, label: true, head: 16, pitch: 1, columns: 170 },
  { upTo: Infinity, ch: 5, min: 4, max: 8, label: false, head: 14, pitch: 1, columns: 92 },
];
const UNRACKED = 16; // nodes without a rack are shown in blocks of so many

export class FleetMap {
  /** `words(spine)` gives the texts of a spine's head; `look` has mode, colours by category, filter, selected node, picked cell. */
  constructor(host, nodes, look, words) {
    Object.assign(this, { host, nodes, look, words, bands: [], places: new Map(), fades: new Map(), repainted: 0 });
    this.byName = new Map(nodes.map((node) => [node.name, node]));
    this.total = nodes.reduce((sum, node) => sum + node.cells.length, 0);
    this.widest = Math.max(1, ...nodes.map((node) => node.cells.length));
    this.spines = group(nodes, (node) => node.spine).map(([name, members]) => ({ name, nodes: members, racks: racksOf(members) }));
    this.eye = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) this.#see(target.band, isIntersecting);
    }, { rootMargin: "600px 0px" });
    new ResizeObserver(() => {
      if (Math.abs(host.clientWidth - this.width) > 2) this.layout();
    }).observe(host);
    this.layout();
  }

  /** Place everything anew for the host's width. */
  layout() {
    this.eye.disconnect();
    this.host.replaceChildren();
    this.bands = [];
    this.places.clear();
    this.width = this.host.clientWidth;
    const size = { ...DENSITIES.find((each) => this.total <= each.upTo) };
    const widestSpine = Math.max(...this.spines.map((spine) => spine.racks.length));
    const least = this.width < 500 ? 2 : 1;
    size.across = Math.max(least, Math.min(Math.floor(this.width / size.columns), Math.max(widestSpine, 4)));
    size.label = size.label ? this.#labelWidth() : 0;
    size.gap = this.width < 500 ? 12 : 20;
    const rackWidth = (this.width - 2 - (size.across - 1) * size.gap) / size.across;
    size.cw = Math.max(size.min, Math.min(size.max, Math.floor((rackWidth - size.label) / this.widest) - 1));
    size.rack = size.label + this.widest * (size.cw + 1) - 1;
    size.gap = size.across > 1 ? Math.min(56, Math.max(8, (this.width - 2 - size.across * size.rack) / (size.across - 1))) : 0;
    this.size = size;
    for (const spine of this.spines) this.#spine(spine);
  }

  #labelWidth() {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `400 11px ${getComputedStyle(this.host).fontFamily}`;
    const widths = this.nodes.slice(0, 400).map((node) => pen.measureText(node.label).width);
    return Math.min(this.width < 500 ? 34 : 72, Math.ceil(Math.max(14, ...widths)) + 6);
  }

  #spine(spine) {
    const section = document.createElement("section");
    section.className = "hm-spine";
    const head = document.createElement("h3");
    spine.head = head;
    section.append(head);
    this.host.append(section);
    this.describe(spine);
    for (let at = 0; at < spine.racks.length; at += this.size.across) {
      this.#band(section, spine, spine.racks.slice(at, at + this.size.across));
    }
  }

  /** Write a spine's head: its name, models and what is free. */
  describe(spine) {
    const { name, detail } = this.words(spine);
    const strong = document.createElement("b");
    strong.textContent = name;
    const rest = document.createElement("span");
    rest.textContent = detail;
    spine.head.replaceChildren(strong, rest);
  }

  #band(section, spine, racks) {
    const { size } = this;
    const canvas = document.createElement("canvas");
    const rows = Math.max(...racks.map((rack) => rack.nodes.length));
    const band = { canvas, spine, racks, index: this.bands.length, height: size.head + rows * (size.ch + size.pitch) + 6, seen: false };
    canvas.band = band;
    canvas.style.width = `${this.width}px`;
    canvas.style.height = `${band.height}px`;
    racks.forEach((rack, column) => {
      rack.x = 1 + column * (size.rack + size.gap);
      rack.nodes.forEach((node, row) => this.places.set(node, { band, rack, column, row, x: rack.x + size.label, y: size.head + row * (size.ch + size.pitch) }));
    });
    this.bands.push(band);
    section.append(canvas);
    this.eye.observe(canvas);
  }

  #see(band, seen) {
    if (seen === band.seen) return;
    band.seen = seen;
    if (seen) {
      const scale = Math.max(1, devicePixelRatio);
      band.canvas.width = Math.round(this.width * scale);
      band.canvas.height = Math.round(band.height * scale);
      band.pen = band.canvas.getContext("2d");
      band.pen.setTransform(scale, 0, 0, scale, 0, 0);
      this.draw(band);
    } else {
      band.canvas.width = band.canvas.height = 0; // gives the memory back
      band.pen = null;
    }
  }

  /** Paint every band in view anew: after a change of mode, theme, filter. */
  redraw() {
    this.colours = palette(this.host);
    for (const band of this.bands) if (band.seen) this.draw(band);
  }

  draw(band) {
    this.colours ??= palette(this.host);
    const { pen } = band;
    if (!pen) return;
    pen.clearRect(0, 0, this.width, band.height);
    for (const rack of band.racks) {
      this.#rackHead(pen, rack);
      for (const node of rack.nodes) this.#node(pen, node);
    }
    for (const rack of band.racks) for (const node of rack.nodes) this.#outline(pen, node);
  }

  #rackHead(pen, rack) {
    const { size, colours } = this;
    if (!rack.title && size.label) return;
    const { title, free } = this.words.rack(rack);
    pen.textBaseline = "alphabetic";
    pen.textAlign = "right";
    pen.font = `400 11px ${colours.font}`;
    pen.fillStyle = colours.ink3;
    const room = size.rack - (size.label ? pen.measureText(free).width + 8 : 0);
    if (size.label) pen.fillText(free, rack.x + size.rack, 12);
    pen.textAlign = "left";
    pen.font = `500 11px ${colours.font}`;
    pen.fillStyle = colours.ink2;
    pen.fillText(clipped(pen, title, room), rack.x, 12);
  }

  #node(pen, node) {
    const { size, colours, look } = this;
    const place = this.places.get(node);
    if (size.label) {
      pen.textAlign = "left";
      pen.textBaseline = "alphabetic";
      pen.font = `${node.name === look.selected ? 600 : 400} ${Math.min(11, size.ch + 1)}px ${colours.font}`;
      pen.fillStyle = node.name === look.selected ? colours.ink : colours.ink3;
      pen.fillText(clipped(pen, node.label, size.label - 4), place.rack.x, place.y + size.ch / 2 + 4);
    }
    for (let gpu = 0; gpu < node.cells.length; gpu += 1) this.#cell(pen, node, gpu, node.cells[gpu], 1);
    this.#nodeWord(pen, node, place);
  }

  #nodeWord(pen, node, place) {
    const { size, colours } = this;
    const word = this.words.node(node);
    if (!word || !size.label || size.ch < 10) return;
    const width = node.cells.length * (size.cw + 1) - 1;
    pen.font = `500 10px ${colours.font}`;
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    const text = pen.measureText(word).width + 8;
    if (text > width - 2 * size.cw) return;
    pen.fillStyle = colours.bg;
    pen.fillRect(place.x + width / 2 - text / 2, place.y, text, size.ch);
    pen.fillStyle = colours.ink2;
    pen.fillText(word, place.x + width / 2, place.y + size.ch / 2 + 3.5);
  }

  #cell(pen, node, gpu, cell, alpha) {
    const { size, look } = this;
    const place = this.places.get(node);
    pen.globalAlpha = alpha * (look.filter && !look.filter(node, cell) ? 0.16 : 1);
    paintCell(pen, this.colours, look.fill(node, cell), place.x + gpu * (size.cw + 1), place.y, size.cw, size.ch);
    pen.globalAlpha = 1;
  }

  #outline(pen, node) {
    const { size, colours, look } = this;
    const place = this.places.get(node);
    const width = node.cells.length * (size.cw + 1) - 1;
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 2;
    if (node.name === look.selected) pen.strokeRect(place.x - 2, place.y - 2, width + 4, size.ch + 4);
    if (look.picked?.node === node) pen.strokeRect(place.x + look.picked.gpu * (size.cw + 1) - 1, place.y - 1, size.cw + 2, size.ch + 2);
  }

  /** Show that cells of a node are other than before: `before` has the old cells. Only they are painted, fading over. */
  repaint(node, before) {
    const place = this.places.get(node);
    node.cells.forEach((cell, gpu) => {
      const old = before[gpu];
      if (old && old.state === cell.state && old.job === cell.job) return;
      this.repainted += 1;
      if (place?.band.seen) this.fades.set(`${node.name}/${gpu}`, { node, gpu, old: old ?? cell, start: performance.now() });
    });
    if (this.fades.size && !this.frame) this.frame = requestAnimationFrame((now) => this.#fade(now));
  }

  #fade(now) {
    this.frame = 0;
    const { size, colours } = this;
    for (const [key, { node, gpu, old, start }] of this.fades) {
      const place = this.places.get(node);
      const pen = place?.band.pen;
      const done = still.matches ? 1 : Math.min(1, Math.max(0, (now - start) / FADE));
      if (pen) {
        pen.fillStyle = colours.bg;
        pen.fillRect(place.x + gpu * (size.cw + 1), place.y, size.cw, size.ch);
        if (done < 1) this.#cell(pen, node, gpu, old, 1 - done);
        this.#cell(pen, node, gpu, node.cells[gpu], done);
        if (this.words.node(node)) this.#nodeWord(pen, node, place);
        if (node.name === this.look.selected || this.look.picked?.node === node) this.#outline(pen, node);
      }
      if (done >= 1 || !pen) this.fades.delete(key);
    }
    if (this.fades.size) this.frame = requestAnimationFrame((next) => this.#fade(next));
  }

  /** The GPU under a point of a band's canvas, or null. */
  at(band, x, y) {
    const { size } = this;
    const row = Math.floor((y - size.head) / (size.ch + size.pitch));
    for (const rack of band.racks) {
      const gpu = Math.floor((x - rack.x - size.label) / (size.cw + 1));
      const node = rack.nodes[row];
      if (x >= rack.x && x < rack.x + size.rack && node) return gpu < 0 ? { node, gpu: -1 } : gpu < node.cells.length ? { node, gpu } : null;
    }
    return null;
  }

  /** Where a GPU is, in the host's coordinates. */
  box({ node, gpu }) {
    const place = this.places.get(node);
    return { x: place.band.canvas.offsetLeft + place.x + gpu * (this.size.cw + 1), y: place.band.canvas.offsetTop + place.y, w: this.size.cw, h: this.size.ch };
  }

  /** The GPU one step away: `dx` along the node and then the racks, `dy` over nodes and then bands. */
  step({ node, gpu }, dx, dy) {
    const place = this.places.get(node);
    if (dx) {
      const next = gpu + dx;
      if (next >= 0 && next < node.cells.length) return { node, gpu: next };
      const rack = place.band.racks[place.column + dx];
      if (!rack) return { node, gpu };
      const beside = rack.nodes[Math.min(place.row, rack.nodes.length - 1)];
      return { node: beside, gpu: dx > 0 ? 0 : beside.cells.length - 1 };
    }
    let found = place.rack.nodes[place.row + dy];
    if (!found) {
      const band = this.bands[place.band.index + dy];
      const rack = band?.racks[Math.min(place.column, band.racks.length - 1)];
      found = rack && (dy > 0 ? rack.nodes[0] : rack.nodes.at(-1));
    }
    return found ? { node: found, gpu: Math.min(gpu, found.cells.length - 1) } : { node, gpu };
  }
}

/** Racks of a spine in order; nodes without one in blocks. */
function racksOf(nodes) {
  return group(nodes, (node) => node.rack).flatMap(([name, members]) => {
    const size = name ? members.length : UNRACKED;
    const racks = [];
    for (let at = 0; at < members.length; at += size) racks.push({ title: name, name, first: at === 0, nodes: members.slice(at, at + size) });
    return racks;
  });
}

function group(items, key) {
  const groups = new Map();
  for (const item of items) {
    const name = key(item);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(item);
  }
  return [...groups];
}

function clipped(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let cut = text.length;
  while (cut > 1 && pen.measureText(`${text.slice(0, cut)}…`).width > room) cut -= 1;
  return `${text.slice(0, cut)}…`;
}
