// Where everything of a fleet's map is: spines in order, their racks side by side in bands, nodes below each other.

// From the smallest to the largest: height, least and most width of a cell, and what is written beside the cells.
const DENSITIES = [
  { ch: 4, min: 2, max: 12, label: false, head: 0, pitch: 1, columns: 36, gap: 0 },
  { ch: 5, min: 4, max: 16, label: false, head: 14, pitch: 1, columns: 80, gap: 1 },
  { ch: 9, min: 6, max: 16, label: true, head: 16, pitch: 1, columns: 170, gap: 1 },
  { ch: 13, min: 9, max: 44, label: true, head: 18, pitch: 2, columns: 230, gap: 1 },
  { ch: 18, min: 9, max: 72, label: true, head: 18, pitch: 3, columns: 230, gap: 1 },
];
const UP_TO = [Infinity, 24_000, 12_000, 2_500, 400]; // GPUs that a density is for
const HEAD = 220; // px of a screen above the map
const UNRACKED = 16; // nodes without a rack are shown in blocks of so many

/** `places` of nodes, `bands`, `spines` and `size` of a fleet drawn into the host. */
export function layOut(nodes, host, { heads, height, zoom, largest = DENSITIES.length - 1 }) {
  const total = nodes.reduce((sum, node) => sum + node.cells.length, 0);
  const width = host.clientWidth;
  const top = DENSITIES.length - 1;
  const at = (density) => planned(nodes, host, width, density, heads);
  let plan = at(Math.min(largest, UP_TO.findLastIndex((most) => total <= most)));
  if (height) while (plan.density > 0 && plan.height > height) plan = at(plan.density - 1);
  else while (plan.density < top) {
    const larger = at(plan.density + 1); // on a large screen there is room for more
    if (larger.height > innerHeight - HEAD) break;
    plan = larger;
  }
  return zoom ? at(Math.min(top, Math.max(0, plan.density + zoom))) : plan;
}

function planned(nodes, host, width, density, heads) {
  const widest = nodes.reduce((most, node) => Math.max(most, node.cells.length), 1);
  const spines = group(nodes, (node) => node.spine).map(([name, members]) => ({ name, nodes: members, racks: racksOf(members), bands: [] }));
  const size = sized(DENSITIES[density], nodes, host, width, widest, spines, heads);
  const plan = { width, density, size, spines, bands: [], places: new Map(), height: 0 };
  for (const spine of spines) {
    plan.height += heads ? 33 : 6;
    for (let at = 0; at < spine.racks.length; at += size.across) banded(plan, spine, spine.racks.slice(at, at + size.across));
  }
  return plan;
}

function sized(density, nodes, host, width, widest, spines, heads) {
  const size = { ...density, head: heads ? density.head : Math.min(density.head, 0) };
  const most = Math.max(4, ...spines.map((spine) => spine.racks.length));
  const least = width < 500 ? 2 : 1;
  size.across = Math.max(least, Math.min(Math.floor(width / Math.min(size.columns, widest * (size.min + size.gap) + 60)), most));
  size.label = heads && size.label ? labelWidth(nodes, host, width) : 0;
  const between = !density.label ? 8 : width < 500 ? 12 : 20;
  const room = (width - 2 - (size.across - 1) * between) / size.across;
  size.cw = Math.max(size.min, Math.min(size.max, Math.floor((room - size.label) / widest) - size.gap));
  size.rack = size.label + widest * (size.cw + size.gap) - size.gap;
  size.between = size.across > 1 ? Math.min(56, Math.max(4, (width - 2 - size.across * size.rack) / (size.across - 1))) : 0;
  return size;
}

function labelWidth(nodes, host, width) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `400 11px ${getComputedStyle(host).fontFamily}`;
  const widest = nodes.slice(0, 400).reduce((most, node) => Math.max(most, pen.measureText(node.label).width), 14);
  return Math.min(width < 500 ? 34 : 72, Math.ceil(widest) + 6);
}

function banded(plan, spine, racks) {
  const { size, bands, places } = plan;
  const rows = Math.max(...racks.map((rack) => rack.nodes.length));
  const band = { spine, racks, index: bands.length, height: size.head + rows * (size.ch + size.pitch) + (size.head ? 6 : 4), pen: null };
  racks.forEach((rack, column) => {
    rack.x = 1 + Math.round(column * (size.rack + size.between));
    rack.band = band;
    rack.nodes.forEach((node, row) => places.set(node, { band, rack, column, row, x: rack.x + size.label, y: size.head + row * (size.ch + size.pitch) }));
  });
  plan.height += band.height;
  bands.push(band);
  spine.bands.push(band);
}

/** Racks of a spine in order; nodes without one in blocks. */
function racksOf(nodes) {
  return group(nodes, (node) => node.rack).flatMap(([name, members]) => {
    const size = name ? members.length : UNRACKED;
    const racks = [];
    for (let at = 0; at < members.length; at += size) racks.push({ name, first: at === 0, nodes: members.slice(at, at + size) });
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
