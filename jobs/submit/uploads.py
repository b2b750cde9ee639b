"""Files that take the place of a text being written."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from cluster.errors import ApiError, BadRequest

LIMIT = 2**20


class TooLong(ApiError):
    """The file is longer than a manifest may be."""

    status, reason = 413, "RequestEntityTooLarge"


def text_of(file: Any) -> str:
    """The text of an uploaded file. Raises TooLong, or BadRequest when there is none or it is no text."""
    if file is None:
        raise BadRequest(_("Choose a file first. Nothing was loaded."))
    if file.size is None or file.size > LIMIT:
        raise TooLong(_("The file is larger than 1 MiB; a manifest is smaller. Nothing was loaded."))
    try:
        return str(file.read().decode())
    except UnicodeDecodeError:
        raise BadRequest(_("The file is not text in UTF-8. Nothing was loaded.")) from None
