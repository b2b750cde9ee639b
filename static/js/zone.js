// Clock times in the reader's own zone, which need not be the browser's: the page says which it is.
const root = document.documentElement;
const zone = root.dataset.zone || undefined;

/** An instant as the options of Intl.DateTimeFormat say, such as `{ hour: "2-digit", minute: "2-digit" }`. */
export function inZone(at, options) {
  return new Date(at).toLocaleString(root.lang, { hourCycle: "h23", timeZone: zone, ...options });
}

/** Hours, minutes and seconds: 14:02:18. */
export function clockOf(at) {
  return inZone(at, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** The day, as the server writes it: 2026-03-01. */
export function dayOf(at) {
  return new Date(at).toLocaleDateString("sv", { timeZone: zone });
}

/** How far the zone's clock is from UTC at an instant: UTC+8. */
export function offsetOf(at) {
  const part = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "shortOffset" }).formatToParts(new Date(at));
  return part.find((each) => each.type === "timeZoneName").value.replace("GMT", "UTC").replace("-", "−").replace(/\+0$/, "");
}

/** What the server puts beside a time: the instant with its day and its zone. */
export function titleOf(at) {
  return `${dayOf(at)} ${clockOf(at)} ${offsetOf(at)}`;
}
