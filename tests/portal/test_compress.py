"""What goes over the wire is small: pages compressed, styles in one file; and streams are left alone."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory

from portal.compress import BUNDLES, PagesMiddleware, StaticStorage


@pytest.mark.django_db(databases="__all__")
def test_pages_are_compressed_for_who_takes_it(client: Client, ada):
    plain = client.get("/jobs/")
    small = client.get("/jobs/", headers={"accept-encoding": "gzip"})
    assert small["Content-Encoding"] == "gzip"
    assert len(small.content) < len(plain.content) / 3
    assert b"</html>" in gzip.decompress(small.content)
    assert not plain.has_header("Content-Encoding")


def test_what_is_streamed_is_not_held_back():
    request = RequestFactory().get("/", headers={"accept-encoding": "gzip"})
    stream = StreamingHttpResponse(iter(["x" * 1000]))
    assert not PagesMiddleware(lambda _: stream)(request).has_header("Content-Encoding")
    assert PagesMiddleware(lambda _: HttpResponse("x" * 1000))(request)["Content-Encoding"] == "gzip"


def test_gathered_styles_are_one_file_in_their_order(tmp_path: Path, settings):
    settings.STATIC_ROOT = tmp_path
    storage = StaticStorage(location=tmp_path, base_url="/static/")
    folder = Path(settings.BASE_DIR) / "static" / "css"
    (tmp_path / "css").mkdir()
    for file in folder.glob("*.css"):
        (tmp_path / "css" / file.name).write_text(file.read_text())
    list(storage.post_process({name: (storage, name) for name in BUNDLES}))
    text = (tmp_path / "css" / "basalt.css").read_text()
    assert "@import" not in text
    parts = re.findall(r'url\("([\w-]+\.css)"\)', (folder / "basalt.css").read_text())
    places = [text.index((folder / part).read_text()) for part in parts]
    assert places == sorted(places)
    assert (tmp_path / "css" / "basalt.css.gz").is_file()
