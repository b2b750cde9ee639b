// The fleet on canvas: spine > rack > node > GPU. One canvas a row of racks ("band"), painted when it comes into view,
// so that a fleet of any size costs only what is seen. A change repaints its own cells and nothing else; what is pointed at
// and what is selected are outlined by elements above the canvas, and cost no painting at all.
import { paintCell, palette } from "./gpucell.js";
import { layOut } from "./fleetlayout.js";

const FADE = 240;
const SMALL = 400; // nodes up to which all of a fleet is kept painted, also what is out of view
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class FleetMap {
  /**
   * `look` has `fill(node, cell)`, `filter(node, cell)` and `selected` (a node's name). `words` gives texts: `spine(spine)` →
   * {name, detail}, `rack(rack)` → {title, free}, `node(node)` → what is written over it. `options`: `heads` (whether spines and
   * racks are named), `height` (a fleet is drawn so small that it fits), `zoom` (steps from the usual size), `largest`
   * (the size that it is not drawn above).
   */
  constructor(host, nodes, look, words, options = {}) {
    Object.assign(this, { host, nodes, look, words, options: { heads: true, zoom: 0, ...options }, fades: new Map(), repainted: 0, drawn: 0, picked: null });
    this.outlines = { selected: outline("hm-selected"), picked: outline("hm-picked") };
    this.eye = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) this.#see(target.band, isIntersecting);
    }, { rootMargin: nodes.length < SMALL ? "20000px 0px" : "400px 0px" });
    new ResizeObserver(() => {
      if (Math.abs(host.clientWidth - this.plan.width) > 2) this.layout();
    }).observe(host);
    this.layout();
    if (document.fonts.status !== "loaded") document.fonts.ready.then(() => this.redraw());
  }

  /** Place everything anew for the host's width. */
  layout() {
    this.eye.disconnect();
    this.fades.clear();
    this.colours = palette(this.host);
    this.plan = layOut(this.nodes, this.host, this.options);
    const sections = this.plan.spines.map((spine) => this.#section(spine));
    this.host.replaceChildren(...sections, this.outlines.selected, this.outlines.picked);
    for (const band of this.plan.bands) this.eye.observe(band.canvas);
    const top = this.host.getBoundingClientRect().top;
    for (const band of this.plan.bands) if (top + band.canvas.offsetTop < innerHeight) this.#see(band, true); // what the eye would tell a frame later
    this.outline();
  }

  /** Draw larger or smaller by steps, as far as that goes. */
  zoom(by) {
    const before = this.plan.density;
    this.options.zoom += by;
    this.layout();
    if (this.plan.density === before) this.options.zoom -= by;
  }

  #section(spine) {
    const section = document.createElement("section");
    section.className = "hm-spine";
    if (this.options.heads) {
      spine.head = document.createElement("h3");
      section.append(spine.head);
      this.describe(spine);
    }
    for (const band of spine.bands) {
      const canvas = document.createElement("canvas");
      Object.assign(canvas.style, { width: `${this.plan.width}px`, height: `${band.height}px` });
      canvas.band = band;
      band.canvas = canvas;
      section.append(canvas);
    }
    return section;
  }

  /** Write a spine's head: its name, models and what is free. */
  describe(spine) {
    if (!spine.head) return;
    const { name, detail } = this.words.spine(spine);
    const strong = document.createElement("b");
    strong.textContent = name;
    const rest = document.createElement("span");
    rest.textContent = detail;
    spine.head.replaceChildren(strong, rest);
  }

  #see(band, seen) {
    if (seen === Boolean(band.pen)) return;
    if (!seen) {
      band.canvas.width = band.canvas.height = 0; // gives the memory back
      band.pen = null;
      return;
    }
    const scale = Math.max(1, devicePixelRatio);
    band.canvas.width = Math.round(this.plan.width * scale);
    band.canvas.height = Math.round(band.height * scale);
    band.pen = band.canvas.getContext("2d");
    band.pen.setTransform(scale, 0, 0, scale, 0, 0);
    this.#draw(band);
    if (!this.isPainted) performance.mark("fleet-painted");
    this.isPainted = true;
  }

  /** Paint every band in view anew: after a change of colouring, theme, filter. */
  redraw() {
    this.colours = palette(this.host);
    for (const band of this.plan.bands) if (band.pen) this.#draw(band);
    this.outline();
  }

  #draw(band) {
    const { pen } = band;
    this.host.dataset.drawn = this.drawn += 1;
    pen.clearRect(0, 0, this.plan.width, band.height);
    for (const rack of band.racks) {
      this.#rackHead(pen, rack);
      for (const node of rack.nodes) this.#node(pen, node);
      for (const node of rack.nodes) for (let gpu = 0; gpu < node.cells.length; gpu += 1) this.#joints(pen, node, gpu);
      for (const node of rack.nodes) this.#nodeWord(pen, node, this.plan.places.get(node));
    }
  }

  #rackHead(pen, rack) {
    const { size } = this.plan;
    if (!size.head) return;
    const { title, free } = this.words.rack(rack);
    const { colours } = this;
    pen.clearRect(rack.x - 1, 0, size.rack + 2, size.head - 2);
    if (!title && size.label) return;
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
    const { size } = this.plan;
    const place = this.plan.places.get(node);
    if (size.label) {
      pen.textAlign = "left";
      pen.textBaseline = "alphabetic";
      pen.font = `400 ${Math.min(11, size.ch + 1)}px ${this.colours.font}`;
      pen.fillStyle = this.colours.ink3;
      pen.fillText(clipped(pen, node.label, size.label - 4, true), place.rack.x, place.y + size.ch / 2 + 4);
    }
    for (let gpu = 0; gpu < node.cells.length; gpu += 1) this.#cell(pen, node, gpu, node.cells[gpu], 1);
  }

  #nodeWord(pen, node, place) {
    const { size } = this.plan;
    const { colours } = this;
    const word = size.label && size.ch >= 10 ? this.words.node(node) : "";
    if (!word) return;
    const width = node.cells.length * (size.cw + size.gap) - size.gap;
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
    const { size } = this.plan;
    const { look } = this;
    const place = this.plan.places.get(node);
    pen.globalAlpha = alpha * (look.filter && !look.filter(node, cell) ? 0.16 : 1);
    paintCell(pen, this.colours, look.fill(node, cell), place.x + gpu * (size.cw + size.gap), place.y, size.cw, size.ch);
    pen.globalAlpha = 1;
  }

  /** The job that a cell is of and what it is painted with, where that is one colour; neighbours of one job are joined. */
  #gang(node, cell) {
    const uid = cell && !cell.parts && cell.holder?.uid;
    if (!uid) return null;
    const fill = this.look.fill(node, cell);
    const colour = fill === "allocated" ? this.colours.allocated : typeof fill === "number" ? this.colours.categories[fill] : null;
    return colour && { uid, colour, dim: Boolean(this.look.filter && !this.look.filter(node, cell)) };
  }

  /** Join a cell to those right of it and below it that are of the same job, so that gangs are seen as one. */
  #joints(pen, node, gpu) {
    const { size, places } = this.plan;
    const mine = size.ch > 4 && this.#gang(node, node.cells[gpu]);
    if (!mine) return;
    const { rack, row, x, y } = places.get(node);
    const isSame = (other) => other && other.uid === mine.uid && other.dim === mine.dim;
    const left = x + gpu * (size.cw + size.gap);
    const below = rack.nodes[row + 1];
    pen.globalAlpha = mine.dim ? 0.08 : 0.5;
    pen.fillStyle = mine.colour;
    if (isSame(this.#gang(node, node.cells[gpu + 1]))) pen.fillRect(left + size.cw, y, size.gap, size.ch);
    if (below && isSame(this.#gang(below, below.cells[gpu]))) pen.fillRect(left, y + size.ch, size.cw, size.pitch);
    pen.globalAlpha = 1;
  }

  /** Clear a cell and what joins it to its neighbours; what still does is drawn again. */
  #clear(pen, node, gpu) {
    const { size, places } = this.plan;
    const { rack, row, x, y } = places.get(node);
    const left = x + gpu * (size.cw + size.gap);
    const above = rack.nodes[row - 1];
    const below = rack.nodes[row + 1];
    const top = above ? size.pitch : 0;
    pen.clearRect(left, y - top, size.cw, size.ch + top + (below ? size.pitch : 0));
    if (gpu > 0) pen.clearRect(left - size.gap, y, size.gap, size.ch);
    if (gpu < node.cells.length - 1) pen.clearRect(left + size.cw, y, size.gap, size.ch);
    this.#joints(pen, node, gpu);
    if (gpu > 0) this.#joints(pen, node, gpu - 1);
    if (!above || gpu >= above.cells.length) return;
    this.#joints(pen, above, gpu);
    this.#nodeWord(pen, above, places.get(above));
  }

  /** Show that cells are other than before: `changes` has what the cells of each node were. Only they are painted, fading over. */
  repaint(changes) {
    const racks = new Set();
    const spines = new Set();
    const now = performance.now();
    for (const [node, before] of changes) {
      const place = this.plan.places.get(node);
      node.cells.forEach((cell, gpu) => {
        if (cell === before[gpu]) return;
        this.repainted += 1;
        if (place.band.pen) this.fades.set(`${node.name}/${gpu}`, { node, gpu, old: before[gpu], start: now });
      });
      racks.add(place.rack);
      spines.add(place.band.spine);
    }
    for (const rack of racks) if (rack.band.pen) this.#rackHead(rack.band.pen, rack);
    for (const spine of spines) this.describe(spine);
    if (this.fades.size && !this.frame) this.frame = requestAnimationFrame((at) => this.#fade(at));
  }

  #fade(now) {
    this.frame = 0;
    const { places } = this.plan;
    for (const [key, { node, gpu, old, start }] of this.fades) {
      const place = places.get(node);
      const pen = place.band.pen;
      const done = still.matches ? 1 : Math.min(1, Math.max(0, (now - start) / FADE));
      if (pen) {
        this.#clear(pen, node, gpu);
        if (done < 1) this.#cell(pen, node, gpu, old, 1 - done);
        this.#cell(pen, node, gpu, node.cells[gpu], done);
        this.#nodeWord(pen, node, place);
      }
      if (done >= 1 || !pen) this.fades.delete(key);
    }
    this.host.dataset.fading = this.fades.size;
    if (this.fades.size) this.frame = requestAnimationFrame((next) => this.#fade(next));
  }

  /** Point at a GPU, or at none. */
  pick(hit) {
    this.picked = hit;
    this.outline();
  }

  /** Put the outlines where the selected node and the GPU that is pointed at are. */
  outline() {
    const chosen = this.look.selected && this.nodes.find((node) => node.name === this.look.selected);
    lay(this.outlines.selected, chosen ? this.#wide(chosen) : null, 2);
    lay(this.outlines.picked, this.picked ? this.box(this.picked) : null, 1);
  }

  #wide(node) {
    const box = this.box({ node, gpu: 0 });
    const { size } = this.plan;
    return { ...box, w: node.cells.length * (size.cw + size.gap) - size.gap };
  }

  /** The GPU under a point of a band's canvas; `gpu` is -1 on the node's name; null beside them. */
  at(band, x, y) {
    const { size } = this.plan;
    const row = Math.floor((y - size.head) / (size.ch + size.pitch));
    for (const rack of band.racks) {
      const gpu = Math.floor((x - rack.x - size.label) / (size.cw + size.gap));
      const node = rack.nodes[row];
      if (x >= rack.x && x < rack.x + size.rack && node) return gpu < 0 ? { node, gpu: -1 } : gpu < node.cells.length ? { node, gpu } : null;
    }
    return null;
  }

  /** Where a GPU is, in the host's coordinates. */
  box({ node, gpu }) {
    const { size, places } = this.plan;
    const place = places.get(node);
    const { canvas } = place.band;
    return { x: canvas.offsetLeft + place.x + gpu * (size.cw + size.gap), y: canvas.offsetTop + place.y, w: size.cw, h: size.ch };
  }

  /** The GPU one step away: `dx` along the node and then the racks, `dy` over nodes and then bands. */
  step({ node, gpu }, dx, dy) {
    const { places, bands } = this.plan;
    const place = places.get(node);
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
      const band = bands[place.band.index + dy];
      const rack = band?.racks[Math.min(place.column, band.racks.length - 1)];
      found = rack && (dy > 0 ? rack.nodes[0] : rack.nodes.at(-1));
    }
    return found ? { node: found, gpu: Math.min(gpu, found.cells.length - 1) } : { node, gpu };
  }

  /** The first GPU of the next spine, or of the one before. */
  leap({ node, gpu }, by) {
    const { places, spines } = this.plan;
    const spine = spines[spines.indexOf(places.get(node).band.spine) + by];
    return spine ? { node: spine.nodes[0], gpu: 0 } : { node, gpu };
  }
}

function outline(name) {
  const made = document.createElement("i");
  made.className = `hm-outline ${name}`;
  made.hidden = true;
  return made;
}

function lay(element, box, around) {
  element.hidden = !box;
  if (!box) return;
  Object.assign(element.style, { left: `${box.x - around}px`, top: `${box.y - around}px`, width: `${box.w + 2 * around}px`, height: `${box.h + 2 * around}px` });
}

/** A text that fits; of a node's name the end stays, which tells it from its neighbours. */
function clipped(pen, text, room, atStart = false) {
  if (pen.measureText(text).width <= room) return text;
  const cut = (left) => (atStart ? `…${text.slice(-left)}` : `${text.slice(0, left)}…`);
  let left = text.length;
  while (left > 1 && pen.measureText(cut(left)).width > room) left -= 1;
  return cut(left);
}
