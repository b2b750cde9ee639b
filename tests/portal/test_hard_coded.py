"""No text for people stands in a template, a script or a view without being translated.

Templates are read as HTML with their tags taken out, scripts and Python by what puts words before people. Names that are the same
in every language are listed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = frozenset(
    [
        "Basalt", "EN", "中文", "Ctrl", "Esc", "Enter", "Shift", "Alt", "Tab", "YAML", "JSON", "CSV", "SVG", "API", "OpenAPI",
        "GPU", "GPUs", "CPU", "CPUs", "UTC", "NVLink", "GB", "MiB", "GiB", "TiB", "ms",
    ]
)  # fmt: skip
"""Names and units, the same in every language."""
EXAMPLES = frozenset({"app=web,!old", "node-a node-b", "default", "pattern"})
"""What people type, and codes."""
SHOWN = ("title", "aria-label", "placeholder", "alt", "aria-roledescription", "aria-valuetext")
WORD = re.compile(r"[^\W\d_][\w’'-]+")
SILENT = {"script", "style", "code", "pre", "kbd", "svg", "textarea"}


def words(text: str) -> list[str]:
    """What of a text is words of a language: names, examples and single letters are not."""
    if text.strip() in EXAMPLES:
        return []
    return [word for word in WORD.findall(text) if word not in NAMES and not re.search(r"[./:=_]|\d", word)]


class Texts(HTMLParser):
    """Words between a template's elements and in the attributes that people meet."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in SILENT
        for name, value in attrs:
            if name in SHOWN and words(value or ""):
                self.found.append((self.getpos()[0], value or ""))

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in SILENT and self._silent > 0

    def handle_data(self, data: str) -> None:
        if not self._silent and words(data):
            self.found.append((self.getpos()[0], data.strip()))


def bare(source: str) -> str:
    """A template without its tags, lines kept; a marked text is one of the tags."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    for pattern in (
        r"{% comment.*?endcomment %}",
        r"{#.*?#}",
        r"{% blocktranslate.*?endblocktranslate %}",
        r"{%.*?%}",
        r"{{.*?}}",
    ):
        source = re.sub(pattern, blank, source, flags=re.S)
    return source


def in_template(path: Path) -> Iterator[str]:
    texts = Texts()
    texts.feed(bare(path.read_text()))
    for line, text in texts.found:
        yield f"{path.relative_to(ROOT)}:{line}: {text[:80]!r}"


SAYS = re.compile(
    r"""(?:\.(?:textContent|innerText|title|placeholder|ariaLabel)\s*=|setAttribute\(\s*"(?:aria-label|title|placeholder)"\s*,
    |\b(?:alert|confirm|prompt)\()\s*(["'`])(.*?)\1""",
    re.X,
)


def in_script(path: Path) -> Iterator[str]:
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        for match in SAYS.finditer(line):
            if words(re.sub(r"\$\{.*?\}", "", match[2])):
                yield f"{path.relative_to(ROOT)}:{number}: {match[2][:80]!r}"


TELLS = {"success", "error", "info", "warning"}  # of django.contrib.messages
LABELS = {"label", "help_text", "empty_label", "verbose_name", "verbose_name_plural", "description"}


def in_python(path: Path) -> Iterator[str]:
    """Literal words in `messages.…(request, "…")`, in labels of form fields, and in validation errors of forms."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        told: list[ast.expr] = []
        match node.func:
            case ast.Attribute(value=ast.Name(id="messages"), attr=attr) if attr in TELLS:
                told = list(node.args[1:2])
            case ast.Attribute(attr="ValidationError") | ast.Name(id="ValidationError"):
                told = list(node.args[:1])
            case ast.Attribute(value=ast.Name(id="forms")):
                told = [word.value for word in node.keywords if word.arg in LABELS]
        for each in told:
            parts = each.values if isinstance(each, ast.JoinedStr) else [each]
            if any(isinstance(part, ast.Constant) and isinstance(part.value, str) and words(part.value) for part in parts):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(each)[:80]}"


def sources() -> Iterator[tuple[Path, Iterator[str]]]:
    for path in sorted((ROOT / "templates").rglob("*.html")):
        yield path, in_template(path)
    for path in sorted((ROOT / "static" / "js").glob("*.js")):
        yield path, in_script(path)
    for room in ("portal", "jobs", "queues", "cluster"):
        for path in sorted((ROOT / room).rglob("*.py")):
            yield path, in_python(path)


def test_no_text_for_people_is_hard_coded():
    assert [fault for _, found in sources() for fault in found] == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.html", '<p title="Hello there">{% translate "fine" %}</p>', ["Hello there"]),
        ("a.html", "{% if a > 1 %}<b>Not fine</b>{% endif %}{# no matter #}", ["Not fine"]),
        ("a.html", "{% blocktranslate %}all <b>fine</b>{% endblocktranslate %} GPU <kbd>Home</kbd> {{ x|default:'fine' }}", []),
        ("a.js", 'box.textContent = "Not fine";', ["Not fine"]),
        ("a.js", 'box.textContent = `${words.fine}: ${n} GPUs`; box.setAttribute("aria-label", "Not fine")', ["Not fine"]),
        ("a.py", 'messages.error(request, "Not fine")', ["Not fine"]),
        ("a.py", 'messages.error(request, _("fine")); forms.CharField(label=f"Not {fine}")', ["Not"]),
    ],
)
def test_the_check_sees_what_it_is_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: list[str]):
    monkeypatch.setattr("tests.portal.test_hard_coded.ROOT", tmp_path)
    (path := tmp_path / name).write_text(text)
    look = {"html": in_template, "js": in_script, "py": in_python}[name.rpartition(".")[2]]
    found = list(look(path))
    assert len(found) == len(said)
    assert all(each in fault for each, fault in zip(said, found, strict=True))
