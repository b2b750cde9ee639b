// What would unblock a job: asked for when the page is there, and again as long as somebody looks at it.
const EVERY = 10_000;
const SOON = 700;

const page = document.querySelector("[data-job]");
let part = page?.querySelector("[data-unblock]") ?? null;

/** The panel around it was drawn anew, without it: put it back. */
export function settle() {
  const slot = page.querySelector("[data-unblock]");
  if (!slot || slot === part) return;
  if (part) slot.replaceWith(part);
  else {
    part = slot;
    look();
  }
}

async function look() {
  let wait = EVERY;
  if (part?.isConnected && !document.hidden) {
    try {
      const answer = await fetch(part.dataset.unblock, { headers: { "X-Requested-With": "fetch" } });
      if (answer.ok && !answer.redirected) {
        const html = await answer.text();
        const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
        part.innerHTML = html;
        if (focused) part.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
        if (part.querySelector("[data-unblock-state=working]")) wait = SOON;
      }
    } catch {
      // offline: the page says so elsewhere, and what is shown stays
    }
  }
  setTimeout(look, wait);
}

if (part) setTimeout(look, part.querySelector("[data-unblock-state=done]") ? EVERY : 0);
