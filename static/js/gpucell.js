// One GPU as a cell: its colour, and a mark that says the same without colour.

/** The colours of the page's theme, read once a drawing. */
export function palette(element) {
  const style = getComputedStyle(element);
  const css = (name) => style.getPropertyValue(name).trim();
  const bg = css("--ba-bg");
  const found = {
    font: css("--ba-font"), bg, ink: css("--ba-ink"), ink2: css("--ba-ink2"), ink3: css("--ba-ink3"), line: css("--ba-line2"), track: css("--ba-track"),
    allocated: css("--gpu-a"), releasing: css("--st-terminating"), unhealthy: css("--st-failed"), cordoned: css("--st-aborted"), unknown: css("--st-unknown-t"),
    categories: [], tints: [],
  };
  for (let at = 0; at <= 6; at += 1) {
    found.categories.push(mix(css(`--cat-${at}`), bg, 0.84));
    found.tints.push(mix(css(`--cat-${at}`), bg, 0.22));
  }
  return found;
}

/** Paint a cell. `fill` is a state's name, a number: a category of an allocated GPU, or `{tint}`: the category of a free one. */
export function paintCell(pen, colours, fill, x, y, w, h) {
  const big = w >= 9 && h >= 9;
  if (typeof fill === "number") {
    pen.fillStyle = colours.categories[fill];
    pen.fillRect(x, y, w, h);
  } else if (typeof fill === "object") {
    pen.fillStyle = colours.tints[fill.tint];
    pen.fillRect(x, y, w, h);
    PAINT.free(pen, colours, x, y, w, h);
  } else PAINT[fill](pen, colours, x, y, w, h, big);
}

const PAINT = {
  allocated(pen, c, x, y, w, h) {
    pen.fillStyle = c.allocated;
    pen.fillRect(x, y, w, h);
  },
  free(pen, c, x, y, w, h) {
    pen.strokeStyle = c.line;
    pen.lineWidth = 1;
    pen.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  },
  releasing(pen, c, x, y, w, h, big) {
    pen.fillStyle = c.releasing;
    pen.fillRect(x, y, w, h);
    if (!big) return;
    pen.fillStyle = c.bg;
    const cx = x + w / 2;
    const cy = y + h / 2;
    pen.beginPath();
    pen.moveTo(cx - 3, cy - 2);
    pen.lineTo(cx + 3, cy - 2);
    pen.lineTo(cx, cy + 2.5);
    pen.fill();
  },
  unhealthy(pen, c, x, y, w, h, big) {
    pen.fillStyle = c.unhealthy;
    pen.fillRect(x, y, w, h);
    pen.strokeStyle = c.bg;
    pen.lineWidth = big ? 2 : 1;
    const m = Math.min(w, h) * 0.26;
    const cx = x + w / 2;
    const cy = y + h / 2;
    pen.beginPath();
    pen.moveTo(cx - m, cy - m);
    pen.lineTo(cx + m, cy + m);
    pen.moveTo(cx + m, cy - m);
    pen.lineTo(cx - m, cy + m);
    pen.stroke();
  },
  cordoned(pen, c, x, y, w, h, big) {
    pen.fillStyle = c.track;
    pen.fillRect(x, y, w, h);
    hatch(pen, x, y, w, h, c.cordoned, big ? 4 : 3);
  },
  unknown(pen, c, x, y, w, h, big) {
    pen.setLineDash([2, 2]);
    pen.strokeStyle = c.unknown;
    pen.lineWidth = 1;
    pen.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    pen.setLineDash([]);
    if (!big) return;
    pen.fillStyle = c.unknown;
    pen.font = `600 10px ${c.font}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText("?", x + w / 2, y + h / 2 + 0.5);
  },
};

function hatch(pen, x, y, w, h, colour, step) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, w, h);
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = -h; at < w + h; at += step) {
    pen.moveTo(x + at, y + h);
    pen.lineTo(x + at + h, y);
  }
  pen.stroke();
  pen.restore();
}

/** `share` of one #rrggbb over another (or #rgb). */
function mix(over, under, share) {
  const parse = (hex) => {
    const full = hex.length < 7 ? [...hex.slice(1)].map((digit) => digit + digit).join("") : hex.slice(1);
    return [0, 2, 4].map((at) => Number.parseInt(full.slice(at, at + 2), 16));
  };
  const below = parse(under);
  return `rgb(${parse(over).map((part, at) => Math.round(part * share + below[at] * (1 - share))).join(" ")})`;
}
