// What a reader would find cut, overlapped or out of line on the page as it stands, in words. Lines with an ellipsis must say the rest somewhere.
() => {
  const found = new Set();
  const say = (fault, box, text) => found.add(`${fault} <${box.tagName.toLowerCase()} ${box.id || box.className}> ${text.trim().slice(0, 60)}`);
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over > 1) found.add(`the page is ${over} px too wide`);
  const unseen = (el) => {
    for (let box = el; box; box = box.parentElement) if (box.offsetWidth <= 1 && getComputedStyle(box).overflow === "hidden") return true;
    return !el.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  };
  const range = document.createRange();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const el = node.parentElement;
    if (!node.data.trim() || el.closest("script,style,noscript,textarea,option,svg,.vh,.cm-editor,.swagger-ui") || unseen(el)) continue;
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter((each) => each.width > 1 && each.height > 1);
    if (!rects.length) continue;
    const right = Math.max(...rects.map((each) => each.right));
    const bottom = Math.max(...rects.map((each) => each.bottom));
    for (let box = el; box !== document.documentElement; box = box.parentElement) {
      const style = getComputedStyle(box);
      const frame = box.getBoundingClientRect();
      if (/auto|scroll/.test(style.overflowX)) break; // what is further right is reached
      if (style.overflowX !== "visible" && right > frame.right + 2) {
        if (style.textOverflow !== "ellipsis") say("is cut:", box, node.data);
        else if (!el.closest("[title]")) say("is shortened, and the rest is nowhere:", box, node.data);
        break;
      }
      if (style.overflowY === "hidden" && bottom > frame.bottom + 4) {
        say("is cut below:", box, node.data);
        break;
      }
      if (box.matches("td,th,button,.btn,section,aside,.ba-figs > *,.ba-cols > *") && right > frame.right + 2) {
        say("runs out of its place:", box, node.data);
        break;
      }
    }
  }
  for (const cell of document.querySelectorAll("td.num, .ba-figs .v")) {
    const style = getComputedStyle(cell);
    if (!style.fontVariantNumeric.includes("tabular-nums")) say("its figures do not stand below each other:", cell, cell.textContent);
    if (cell.matches("td") && style.display === "table-cell" && !/right|end/.test(style.textAlign)) say("its figures are not at the right:", cell, cell.textContent);
  }
  return [...found].slice(0, 8);
}
