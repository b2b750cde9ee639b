"""Where the pages of this app are found."""

from __future__ import annotations

from typing import Any

app_name = "queues"
urlpatterns: list[Any] = []
