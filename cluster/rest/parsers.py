"""Request bodies, never more than 1 MiB: manifests as JSON or YAML, one document or several, and questions as JSON."""

from __future__ import annotations

from typing import IO, Any

from rest_framework.parsers import BaseParser

from cluster.documents import Document, load, load_json
from cluster.errors import BadRequest, FieldError
from cluster.rest.problems import TooLarge
from cluster.said import said

LIMIT = 2**20


class Body(list[Document]):
    """The documents of a body, with the `text` that they were read from."""

    text: str = ""


class JSONManifestParser(BaseParser):
    """`request.data` becomes a list of documents. Raises TooLarge, BadRequest (with the line of the fault)."""

    media_type = "application/json"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        body = _read(stream)
        found = Body(load(body, limit=LIMIT))
        found.text = body.decode("utf-8-sig")
        return found


class YAMLManifestParser(JSONManifestParser):
    """The same for YAML, whose media types are many."""

    media_type = "application/yaml"


class OldYAMLManifestParser(JSONManifestParser):
    """YAML under the name that it had before RFC 9512."""

    media_type = "application/x-yaml"


class TextYAMLManifestParser(JSONManifestParser):
    """YAML as text."""

    media_type = "text/*"


class JSONParser(BaseParser):
    """Any JSON value; what no database can hold is refused, and so are depths. Raises TooLarge, BadRequest."""

    media_type = "application/json"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        return load_json(_read(stream), limit=LIMIT)


def _read(stream: IO[bytes]) -> bytes:
    body = stream.read(LIMIT + 1)
    if len(body) > LIMIT:
        raise TooLarge(said("A body has at most %(limit)s bytes; send large manifests in parts.", limit=f"{LIMIT:,}"))
    return body


def only(documents: Any) -> Document:
    """The one document of a body that must hold one. Raises BadRequest."""
    if not isinstance(documents, list) or not documents:
        raise BadRequest(
            said("the body is empty: send one manifest, as JSON or YAML"), [FieldError("", said("send one manifest"), "empty")]
        )
    if len(documents) > 1:
        raise BadRequest(
            said("the body holds %(count)s documents: this address takes one; /api/v1/apply takes many", count=len(documents))
        )
    document: Document = documents[0]
    return document
