"""The files of npm packages that browsers may load, one by one: nothing else of node_modules is served.

`VendorFinder` shows them to Django's static files under `vendor/`, in development and to `collectstatic` alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.contrib.staticfiles.utils import matches_patterns
from django.core.files.storage import FileSystemStorage, Storage

FILES: dict[str, str] = {
    "tabler.min.css": "@tabler/core/dist/css/tabler.min.css",
    "echarts.esm.min.mjs": "echarts/dist/echarts.esm.min.mjs",
    "fonts/inter-latin-wght-normal.woff2": "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
    "fonts/inter-latin-ext-wght-normal.woff2": "@fontsource-variable/inter/files/inter-latin-ext-wght-normal.woff2",
    "fonts/jetbrains-mono-latin-wght-normal.woff2": (
        "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2"
    ),
    "codemirror/codemirror.js": "codemirror/dist/index.js",
    "codemirror/autocomplete.js": "@codemirror/autocomplete/dist/index.js",
    "codemirror/commands.js": "@codemirror/commands/dist/index.js",
    "codemirror/lang-yaml.js": "@codemirror/lang-yaml/dist/index.js",
    "codemirror/language.js": "@codemirror/language/dist/index.js",
    "codemirror/lint.js": "@codemirror/lint/dist/index.js",
    "codemirror/search.js": "@codemirror/search/dist/index.js",
    "codemirror/state.js": "@codemirror/state/dist/index.js",
    "codemirror/streamparser.js": "@codemirror/streamparser/dist/index.js",
    "codemirror/view.js": "@codemirror/view/dist/index.js",
    "codemirror/lezer-common.js": "@lezer/common/dist/index.js",
    "codemirror/lezer-highlight.js": "@lezer/highlight/dist/index.js",
    "codemirror/lezer-lr.js": "@lezer/lr/dist/index.js",
    "codemirror/lezer-yaml.js": "@lezer/yaml/dist/index.js",
    "codemirror/find-cluster-break.js": "@marijn/find-cluster-break/src/index.js",
    "codemirror/style-mod.js": "style-mod/src/style-mod.js",
    "codemirror/crelt.js": "crelt/index.js",
    "codemirror/w3c-keyname.js": "w3c-keyname/index.js",
}


class VendorFinder(BaseFinder):
    """Finds the files of `FILES` in node_modules, under `vendor/`."""

    prefix = "vendor/"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._root = Path(settings.BASE_DIR) / "node_modules"

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> str | list[str]:
        """The file behind a static path, or nothing when it is not one of ours or was not installed."""
        source = FILES.get(path.removeprefix(self.prefix)) if path.startswith(self.prefix) else None
        if source is None or not (self._root / source).is_file():
            return []
        found = str(self._root / source)
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        """Every file that is installed, with a storage that knows it by its public path."""
        storage = _Renamed(self._root)
        for name, source in FILES.items():
            if (self._root / source).is_file() and not matches_patterns(name, ignore_patterns or ()):
                yield name, storage


class _Renamed(FileSystemStorage):
    """node_modules, read by the names that we publish."""

    prefix = "vendor"

    def __init__(self, root: Path) -> None:
        super().__init__(location=root)

    def path(self, name: str) -> str:
        return super().path(FILES[name])
