"""The portal of a case that looks at pages."""

from __future__ import annotations

from typing import Any

from portal.scenario.errors import NotSupported
from portal.scenario.world import World


class Portal:
    def __init__(self, setup: dict[str, Any]) -> None:
        self.sink = None

    def connect(self, world: World) -> None: ...
    def close(self) -> None: ...

    def do(self, word: str, value: Any) -> None:
        raise NotSupported(word)
