"""What an API server does to a Secret before it keeps it: texts are folded into the encoded data."""

from __future__ import annotations

import base64

from cluster.kinds import SECRET, Kind
from cluster.port import Obj


def fold_texts(kind: Kind, obj: Obj) -> None:
    """Fold a Secret's `stringData` into its `data`, in place; it wins over an equal key. The rules tell what is malformed."""
    if kind != SECRET or "stringData" not in obj:
        return
    texts, data = obj["stringData"] or {}, obj.get("data") or {}
    if not isinstance(texts, dict) or not isinstance(data, dict) or not all(isinstance(text, str) for text in texts.values()):
        return
    del obj["stringData"]
    if texts:
        obj["data"] = {**data, **{key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}}
