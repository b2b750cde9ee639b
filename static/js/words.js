// The page's language: words and forms come from the server as one JSON block.
export const words = JSON.parse(document.getElementById("ba-words").textContent);
export const language = document.documentElement.lang;

/** Fill `%(name)s`, `%(name)d` and `%(name)02d` places of a translated sentence. */
export function fill(form, values) {
  return form.replace(/%\((\w+)\)(?:0(\d))?[sd]/g, (_, name, pad) => String(values[name]).padStart(Number(pad ?? 0), "0"));
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

const whole = new Intl.NumberFormat(language, { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });

/** A number as the server writes it: one decimal below 100, none above. */
export function numberWords(value) {
  return Math.abs(value) >= 100 ? whole.format(value) : tenth.format(value);
}

/** An amount in smallest units: bytes with their unit, everything else counted. */
export function amountWords(units, resource) {
  if (resource === "pods") return numberWords(units);
  if (resource !== "memory" && resource !== "ephemeral-storage" && !resource.startsWith("hugepages-")) return numberWords(units / 1000);
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let [value, step] = [units, 0];
  while (Math.abs(value) >= 1024 && step < names.length - 1) [value, step] = [value / 1024, step + 1];
  return `${numberWords(value)} ${names[step]}`;
}

/** GPU indices as the server writes them: `0–3,6`. */
export function runs(indices) {
  const found = [];
  for (const index of [...indices].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && last.at(-1) === index - 1) last.splice(1, 1, index);
    else found.push([index]);
  }
  return found.map((run) => run.join("–")).join(",");
}

/** The word of a phase; a job whose gang is admitted is "in queue". */
export function stateWord(phase, mark) {
  return mark === "inqueue" ? words.phases.Inqueue : (words.phases[phase] ?? phase);
}

/** `NVIDIA-A100-SXM4-80GB` is an A100; the server's rule. */
export function shortModel(model) {
  return model.replace(/^(?:NVIDIA[- ]|Tesla-|AMD[- ])+/, "").replace(/[- ](?:SXM|PCIE|HBM|NVL|\d+GB).*$/i, "");
}
