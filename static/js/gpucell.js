// One GPU as a cell: its colour, and a mark that says the same without colour. Cells too small for marks are colour alone.

const BIG = 9; // px a side from which a cell has room for its mark

/** The colours of the page's theme, read once a drawing. */
export function palette(element) {
  const style = getComputedStyle(element);
  const css = (name) => style.getPropertyValue(name).trim();
  const bg = css("--ba-bg");
  const found = {
    font: css("--ba-font"), bg, ink: css("--ba-ink"), ink2: css("--ba-ink2"), ink3: css("--ba-ink3"), line: css("--ba-line2"), track: css("--ba-track"),
    allocated: css("--gpu-a"), second: css("--gpu-b"), reserved: css("--st-inqueue"), releasing: css("--st-terminating"), unhealthy: css("--st-failed"),
    cordoned: css("--st-aborted"), not_ready: css("--st-pending"), unknown: css("--st-unknown-t"), categories: [], tints: [], ramp: [],
  };
  for (let at = 0; at <= 6; at += 1) {
    found.categories.push(mix(css(`--cat-${at}`), bg, 0.84));
    found.tints.push(mix(css(`--cat-${at}`), bg, 0.22));
    found.ramp.push(css(`--rp-${at}`));
  }
  found.small = {
    allocated: found.allocated, shared: found.second, idle: css("--gs-idle"), free: found.track, reserved: css("--gs-reserved"), releasing: found.releasing,
    unhealthy: found.unhealthy, cordoned: css("--gs-cordoned"), not_ready: found.not_ready, unknown: css("--gs-unknown"), unmeasured: css("--gs-unknown"),
  };
  return found;
}

/**
 * Paint a cell. `fill` is a state's name, a number: a category of an allocated GPU, `{tint}`: the category of a free one,
 * `{ramp}`: a step of the load ramp, or `{parts}`: [{size, category}] of a card that is shared, `category` null by turns.
 */
export function paintCell(pen, colours, fill, x, y, w, h) {
  const big = w >= BIG && h >= BIG;
  if (typeof fill === "string") {
    if (big || fill === "allocated") PAINT[fill](pen, colours, x, y, w, h);
    else flat(pen, colours.small[fill], x, y, w, h);
  } else if (typeof fill === "number") flat(pen, colours.categories[fill], x, y, w, h);
  else if (fill.parts) parted(pen, colours, fill.parts, x, y, w, h);
  else if (fill.tint !== undefined) {
    flat(pen, colours.tints[fill.tint], x, y, w, h);
    if (big) frame(pen, colours.line, x, y, w, h);
  } else flat(pen, colours.ramp[fill.ramp], x, y, w, h);
}

function flat(pen, colour, x, y, w, h) {
  pen.fillStyle = colour;
  pen.fillRect(x, y, w, h);
}

function frame(pen, colour, x, y, w, h, width = 1) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.strokeRect(x + width / 2, y + width / 2, w - width, h - width);
}

/** The parts of a card side by side, as wide as they are; what is left is the empty track. */
function parted(pen, colours, parts, x, y, w, h) {
  flat(pen, colours.track, x, y, w, h);
  let from = 0;
  parts.forEach(({ size, category }, at) => {
    const left = x + Math.round((from / 1000) * w);
    from += size;
    const right = x + Math.round((from / 1000) * w);
    const gap = right - left > 3 && from < 1000 ? 1 : 0;
    flat(pen, category === null ? (at % 2 ? colours.second : colours.allocated) : colours.categories[category], left, y, right - left - gap, h);
  });
  if (w >= BIG && h >= BIG) frame(pen, colours.line, x, y, w, h);
}

const PAINT = {
  allocated(pen, c, x, y, w, h) {
    flat(pen, c.allocated, x, y, w, h);
  },
  shared(pen, c, x, y, w, h) {
    parted(pen, c, [{ size: 450, category: null }, { size: 300, category: null }], x, y, w, h);
  },
  idle(pen, c, x, y, w, h) {
    flat(pen, c.allocated, x, y, w, h);
    flat(pen, c.bg, x + 3, y + 3, w - 6, h - 6);
    dot(pen, c.allocated, x + w / 2, y + h / 2, 1.6);
  },
  free(pen, c, x, y, w, h) {
    frame(pen, c.line, x, y, w, h);
  },
  reserved(pen, c, x, y, w, h) {
    hatch(pen, x, y, w, h, c.reserved, 4, 1.5);
    frame(pen, c.reserved, x, y, w, h, 1.5);
  },
  releasing(pen, c, x, y, w, h) {
    flat(pen, c.releasing, x, y, w, h);
    shape(pen, c.bg, [[-3, -2], [3, -2], [0, 2.5]], x + w / 2, y + h / 2);
  },
  unhealthy(pen, c, x, y, w, h) {
    flat(pen, c.unhealthy, x, y, w, h);
    const m = Math.min(w, h) * 0.26;
    const [cx, cy] = [x + w / 2, y + h / 2];
    lines(pen, c.bg, 2, [[cx - m, cy - m, cx + m, cy + m], [cx + m, cy - m, cx - m, cy + m]]);
  },
  cordoned(pen, c, x, y, w, h) {
    flat(pen, c.track, x, y, w, h);
    hatch(pen, x, y, w, h, c.cordoned, 4, 1);
  },
  not_ready(pen, c, x, y, w, h) {
    flat(pen, c.not_ready, x, y, w, h);
    const cx = x + w / 2;
    lines(pen, c.bg, 2, [[cx, y + h * 0.22, cx, y + h * 0.56], [cx, y + h * 0.68, cx, y + h * 0.68 + 2]]);
  },
  unknown(pen, c, x, y, w, h) {
    pen.setLineDash([2, 2]);
    frame(pen, c.unknown, x, y, w, h);
    pen.setLineDash([]);
    pen.fillStyle = c.unknown;
    pen.font = `600 10px ${c.font}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText("?", x + w / 2, y + h / 2 + 0.5);
  },
  unmeasured(pen, c, x, y, w, h) {
    flat(pen, c.track, x, y, w, h);
    for (let at = 3; at < w; at += 4) dot(pen, c.ink3, x + at, y + h / 2, 0.8);
  },
};

function dot(pen, colour, x, y, radius) {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.fill();
}

function shape(pen, colour, points, x, y) {
  pen.fillStyle = colour;
  pen.beginPath();
  for (const [dx, dy] of points) pen.lineTo(x + dx, y + dy);
  pen.fill();
}

function lines(pen, colour, width, pairs) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  for (const [ax, ay, bx, by] of pairs) {
    pen.moveTo(ax, ay);
    pen.lineTo(bx, by);
  }
  pen.stroke();
}

function hatch(pen, x, y, w, h, colour, step, width) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, w, h);
  pen.clip();
  const found = [];
  for (let at = -h; at < w + h; at += step) found.push([x + at, y + h, x + at + h, y]);
  lines(pen, colour, width, found);
  pen.restore();
}

/** `share` of one #rrggbb over another (or #rgb). */
function mix(over, under, share) {
  const parse = (hex) => {
    const full = hex.length < 7 ? [...hex.slice(1)].map((digit) => digit + digit).join("") : hex.slice(1);
    return [0, 2, 4].map((at) => Number.parseInt(full.slice(at, at + 2), 16));
  };
  const below = parse(under);
  const parts = parse(over).map((part, at) => Math.round(part * share + below[at] * (1 - share)));
  return `rgb(${parts.join(" ")})`;
}
