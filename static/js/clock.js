// The cluster's present instant. Its clock may run faster than the wall's, and the reader's own may be wrong.
const root = document.documentElement;
const begun = Date.now();
const start = Number(root.dataset.now) * 1000 || begun;
const speed = Number(root.dataset.speed) || 1;

/** Milliseconds since 1970, as the cluster counts them. */
export function present() {
  return start + (Date.now() - begun) * speed;
}
