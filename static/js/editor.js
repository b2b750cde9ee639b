// The YAML editor: CodeMirror over the page's own textarea, which stays what is posted.
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { searchKeymap } from "@codemirror/search";
import { yaml } from "@codemirror/lang-yaml";
import { classHighlighter } from "@lezer/highlight";

const setChanged = StateEffect.define();
const changedLine = Decoration.line({ class: "chg" });
const changedLines = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(setChanged)) continue;
      const lines = effect.value.filter((line) => line <= transaction.state.doc.lines);
      return Decoration.set(lines.map((line) => changedLine.range(transaction.state.doc.line(line).from)));
    }
    return marks.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Put an editor in place of `textarea`. `onEdit(text)` hears what the user types; `onSubmit()` Ctrl+Enter. */
export function editor(textarea, { onEdit, onSubmit }) {
  const nonce = document.querySelector("script[nonce]")?.nonce ?? "";
  let silent = false;
  const view = new EditorView({
    state: EditorState.create({
      doc: textarea.value,
      extensions: [
        lineNumbers(), highlightActiveLine(), highlightActiveLineGutter(), drawSelection(), history(), bracketMatching(),
        indentUnit.of("  "), yaml(), syntaxHighlighting(classHighlighter), lintGutter(), changedLines,
        keymap.of([{ key: "Mod-Enter", run: () => { onSubmit(); return true; } }, ...defaultKeymap, ...historyKeymap, ...searchKeymap]),
        EditorView.contentAttributes.of({ "aria-label": textarea.dataset.label, spellcheck: "false", tabindex: "0" }),
        EditorView.cspNonce.of(nonce),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          textarea.value = update.state.doc.toString();
          if (!silent) onEdit(textarea.value);
        }),
      ],
    }),
  });
  textarea.hidden = true;
  textarea.after(view.dom);
  return {
    text: () => view.state.doc.toString(),
    /** Replace the text, touching only what differs, so that the cursor and the history stay. */
    replace(text) {
      const old = view.state.doc.toString();
      if (old === text) return;
      let start = 0;
      while (start < old.length && start < text.length && old[start] === text[start]) start += 1;
      let end = 0;
      while (end < old.length - start && end < text.length - start && old.at(-1 - end) === text.at(-1 - end)) end += 1;
      silent = true;
      view.dispatch({ changes: { from: start, to: old.length - end, insert: text.slice(start, text.length - end) } });
      silent = false;
    },
    faults(list) {
      const { doc } = view.state;
      const marks = list.filter(({ line }) => line >= 1).map(({ line, message, severity = "error" }) => {
        const at = doc.line(Math.min(line, doc.lines));
        const from = at.from + (at.text.length - at.text.trimStart().length);
        return { from: Math.min(from, at.to), to: at.to, severity, message };
      });
      view.dispatch(setDiagnostics(view.state, marks));
    },
    changed(lines) {
      view.dispatch({ effects: setChanged.of(lines) });
    },
    show(line) {
      const at = view.state.doc.line(Math.min(line, view.state.doc.lines));
      view.dispatch({ selection: { anchor: at.from }, effects: EditorView.scrollIntoView(at.from, { y: "center" }) });
      view.focus();
    },
  };
}

/** Numbers (from 1) of the lines of `now` that `before` does not have, by their longest common subsequence. */
export function newLines(before, now) {
  const a = before.split("\n");
  const b = now.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  const left = a.slice(head, a.length - tail);
  const right = b.slice(head, b.length - tail);
  if (left.length * right.length > 4_000_000) return right.map((_, index) => head + index + 1);
  const width = right.length + 1;
  const best = new Uint32Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      best[i * width + j] = left[i] === right[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const lines = [];
  let i = 0;
  for (let j = 0; j < right.length; ) {
    if (i < left.length && left[i] === right[j]) { i += 1; j += 1; } else if (i < left.length && best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
    else { lines.push(head + j + 1); j += 1; }
  }
  return lines;
}
