"""Pages compressed on their way, and the styles of an installation as one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from whitenoise.storage import CompressedStaticFilesStorage

IMPORT = re.compile(r'@import url\("([\w-]+\.css)"\);\n?')
BUNDLES = ("css/basalt.css",)


class PagesMiddleware(GZipMiddleware):
    """Compresses whole answers. What is streamed goes as it comes: a log that is followed must not wait for a buffer.

    Django adds bytes at random, so that lengths give away no secret of the page; tokens against forgery differ each time.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        return response if response.streaming else super().process_response(request, response)


class StaticStorage(CompressedStaticFilesStorage):  # type: ignore[misc]
    """Puts imported styles in the place of their imports when files are gathered: one request instead of one after the other."""

    def post_process(self, paths: dict[str, Any], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        if not dry_run:
            for name in BUNDLES:
                self._inline(Path(self.path(name)))
        yield from super().post_process(paths, dry_run, **options)

    def _inline(self, path: Path) -> None:
        if path.is_file():
            path.write_text(IMPORT.sub(lambda match: (path.parent / match[1]).read_text(), path.read_text()))
