"""What a person sees on a page, and what its forms hold."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_UNSEEN = frozenset({"script", "style", "template", "head"})
_EMPTY = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
})  # fmt: skip


class Page(HTMLParser):
    """One page: its visible `text`, the rows of its tables, and the values of its inputs by name."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, bool, str]] = []
        self._words: list[str] = []
        self._by_class: dict[str, list[str]] = {}
        self._select = ""
        self.rows = 0
        self.inputs: list[tuple[str, str, bool]] = []
        self.feed(content)
        self.close()

    @property
    def text(self) -> str:
        """What is visible, white space made single."""
        return _plain(self._words)

    def text_of(self, name: str) -> str:
        """The visible text inside elements of a class."""
        return _plain(self._by_class.get(name, []))

    def values(self, name: str) -> set[str]:
        """All values that inputs or options of this name offer."""
        return {value for key, value, _ in self.inputs if key == name}

    def form(self) -> dict[str, str]:
        """What would be sent as the page stands: inputs that are not chosen are left out."""
        return {key: value for key, value, chosen in self.inputs if chosen and key}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {key: value or "" for key, value in attrs}
        self._note_input(tag, told)
        if tag == "tr" and self._is_seen() and any(name == "tbody" for name, _, _ in self._open):
            self.rows += 1
        if tag not in _EMPTY:
            self._open.append((tag, tag not in _UNSEEN and "hidden" not in told, told.get("class", "")))

    def handle_endtag(self, tag: str) -> None:
        while self._open and any(name == tag for name, _, _ in self._open):
            if self._open.pop()[0] == tag:
                break
        if tag == "select":
            self._select = ""

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1][0] == "textarea" and self.inputs:
            name, value, chosen = self.inputs[-1]
            self.inputs[-1] = (name, value + data, chosen)
        if self._is_seen():
            self._words.append(data)
            for _, _, classes in self._open:
                for name in classes.split():
                    self._by_class.setdefault(name, []).append(data)

    def _is_seen(self) -> bool:
        return all(seen for _, seen, _ in self._open)

    def _note_input(self, tag: str, told: dict[str, str]) -> None:
        if tag == "input":
            chosen = told.get("type") not in ("checkbox", "radio") or "checked" in told
            self.inputs.append((told.get("name", ""), told.get("value", ""), chosen))
        elif tag == "textarea":
            self.inputs.append((told.get("name", ""), "", True))
        elif tag == "select":
            self._select = told.get("name", "")
        elif tag == "option" and self._select:
            self.inputs.append((self._select, told.get("value", ""), "selected" in told))


def _plain(words: list[str]) -> str:
    return re.sub(r"\s+", " ", " ".join(words)).strip()
