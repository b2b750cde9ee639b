"""The victim of the crash test: writes into the table from several threads and says what was acknowledged.

Each line on the standard output is `thread number resourceVersion`, written only after the store answered.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import django


def main() -> None:
    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from cluster.admission import Admission
    from cluster.embedded import open_embedded
    from cluster.kinds import CONFIG_MAP, POD
    from cluster.port import StatusWrite
    from cluster.routers import store_alias

    call_command("migrate", database=store_alias(), verbosity=0)
    cluster = open_embedded(Path(settings.DATA_DIR), admission=Admission()).cluster
    first = int(cluster.list(CONFIG_MAP).resource_version)

    def say(*words: object) -> None:
        os.write(1, (" ".join(map(str, words)) + "\n").encode())

    def creator(thread: int) -> None:
        number = len(cluster.list(CONFIG_MAP, f"t{thread}").items)
        while True:
            made = cluster.create(CONFIG_MAP, {"metadata": {"name": f"c{number:06}", "namespace": f"t{thread}"}})
            say(thread, number, made["metadata"]["resourceVersion"])
            number += 1

    def twins() -> None:
        for name in ("left", "right"):
            if not cluster.list(POD, "twins", fields=f"metadata.name={name}").items:
                cluster.create(POD, {"metadata": {"name": name, "namespace": "twins"}, "spec": {}})
        number = int(cluster.get(POD, "left", "twins")["status"].get("count", 0))
        while True:
            number += 1
            cluster.patch_status_many(POD, [StatusWrite("twins", name, {"count": number}) for name in ("left", "right")])
            say("twins", number, 0)

    say("start", 0, first)
    for target, arguments in ((twins, ()), *((creator, (thread,)) for thread in range(3))):
        threading.Thread(target=target, args=arguments, daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
