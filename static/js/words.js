// The page's language: words and forms come from the server as one JSON block.
export const words = JSON.parse(document.getElementById("ba-words").textContent);

/** Fill `%(name)s`, `%(name)d` and `%(name)02d` places of a translated sentence. */
export function fill(form, values) {
  return form.replace(/%\((\w+)\)(0\d)?[sd]/g, (_, name, pad) => String(values[name]).padStart(pad ? Number(pad) : 0, "0"));
}

/** Seconds in words, two units at most; the same forms as the server's. */
export function durationWords(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const days = Math.floor(s / 86400);
  const hours = Math.floor(s / 3600);
  const minutes = Math.floor(s / 60);
  if (days) return fill(words.days, { days, hours: hours % 24 });
  if (hours) return fill(words.hours, { hours, minutes: minutes % 60 });
  if (minutes) return fill(words.minutes, { minutes });
  return fill(words.seconds, { seconds: s });
}

const whole = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 1 });

/** A number as `portal.display.number` writes it. */
export function numberWords(value) {
  return Math.abs(value) >= 100 ? whole.format(value) : tenth.format(value);
}

/** `NVIDIA-A100-SXM4-80GB` is an A100; the same rule as `portal.display.short_model`. */
export function shortModel(model) {
  return model.replace(/^(?:NVIDIA[- ]|Tesla-|AMD[- ])+/, "").replace(/[- ](?:SXM|PCIE|HBM|NVL|\d+GB).*$/i, "");
}
