"""Translations without gettext: Babel extracts, updates and compiles the catalogs.

`python -m portal.translations` brings `locale/*/LC_MESSAGES/django.po` up to date with the sources and compiles them;
`--check` only says which texts have no translation, with exit status 1 if there are any.
"""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract, extract_python
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("cluster", "scheduler", "queues", "jobs", "portal")
KEYWORDS: dict[str, Any] = {
    "_": None,
    "_now": None,
    "said": None,
    "sayable": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
}
_CALL = re.compile(r"(?<![\w.])(?:_|n?p?gettext)\(")

_VARIABLE = re.compile(rb"\bsaid(?=[.\[])")


def _calls(line: str) -> Iterator[str]:
    """The gettext calls in one line of a templatized source, each cut at the bracket that closes it."""
    for start in _CALL.finditer(line):
        for end in re.finditer(r"\)", line[start.end() :]):
            call = line[start.start() : start.end() + end.end()]
            try:
                ast.parse(call)
            except SyntaxError:
                continue
            yield call
            break


def extract_template(file: Any, keywords: Any, tags: Any, options: Any) -> Iterator[Any]:
    """Babel's extraction method for Django templates, through Django's own translation of a template into calls."""
    for number, line in enumerate(templatize(file.read().decode()).splitlines(), start=1):
        for call in _calls(line):
            for _, function, message, comments in extract_python(io.BytesIO(call.encode()), keywords, tags, options):
                yield number, function, message, comments


def extract_source(file: Any, keywords: Any, tags: Any, options: Any) -> Iterator[Any]:
    """Babel's own extraction, which takes a variable that is called like a function of ours for a call of it further on."""
    yield from extract_python(io.BytesIO(_VARIABLE.sub(b"variable", file.read())), keywords, tags, options)


def messages() -> Catalog:
    """Every text of the sources and templates that is marked for translation, with where it stands."""
    catalog = Catalog(project="Basalt", charset="utf-8")
    sources: list[tuple[Path, Any]] = [(path, extract_source) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    sources += [(path, extract_template) for path in sorted((ROOT / "templates").rglob("*.html"))]
    for path, method in sources:
        with path.open("rb") as file:
            for line, message, comments, context in extract(method, file, keywords=KEYWORDS):
                where = [(str(path.relative_to(ROOT)), line)]
                flags = ["python-format"] if "%(" in str(message) else []
                catalog.add(message, locations=where, auto_comments=comments, context=context, flags=flags)
    return catalog


def catalogs() -> Iterable[Path]:
    """The translated catalogs of the project."""
    return sorted((ROOT / "locale").glob("*/LC_MESSAGES/django.po"))


def _read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parts[-3])


def untranslated(catalog: Catalog, template: Catalog) -> list[str]:
    """Texts of the sources that a catalog lacks, has empty, only guesses (fuzzy) or gives other placeholders."""
    faults = []
    for message in template:
        if not message.id:
            continue
        found = catalog.get(message.id, message.context)
        text = found.string if found else ""
        complete = all(text) if isinstance(text, tuple | list) else bool(text)
        place = ":".join(map(str, message.locations[0])) if message.locations else "?"
        if found is None or not complete or found.fuzzy:
            faults.append(f"{place}: {message.id!r}")
        else:
            faults += [f"{place}: {message.id!r}: {error}" for error in found.check(catalog)]
    return faults


def update(path: Path, template: Catalog) -> None:
    """Bring one catalog up to date, without guesses, and compile it beside itself."""
    catalog = _read(path)
    catalog.update(template, no_fuzzy_matching=True)
    catalog.obsolete.clear()
    with path.open("wb") as file:
        write_po(file, catalog, width=120, sort_by_file=True, include_lineno=False, omit_header=False)
    with path.with_suffix(".mo").open("wb") as file:
        write_mo(file, catalog)


def main(arguments: list[str]) -> int:
    """The command line; see the module's first lines."""
    import django

    django.setup()
    template, status = messages(), 0
    for path in catalogs():
        if "--check" not in arguments:
            update(path, template)
        faults = untranslated(_read(path), template)
        if faults:
            status = 1
            sys.stderr.write(f"{path.relative_to(ROOT)}: {len(faults)} texts without translation\n")
            sys.stderr.writelines(f"  {fault}\n" for fault in faults)
    return status


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    raise SystemExit(main(sys.argv[1:]))
