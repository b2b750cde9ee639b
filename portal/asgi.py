"""The ASGI application: pages and API over HTTP, the live channel over WebSocket, and the publisher's loop."""

from __future__ import annotations

import asyncio
import os
import warnings
from http.server import ThreadingHTTPServer
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
# WhiteNoise's files are streamed by synchronous iterators; Django reads them in a thread, which is what we want.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
_pages = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402 - Django must be set up first
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from channels.sessions import SessionMiddlewareStack  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management import CommandError  # noqa: E402
from django.urls import path  # noqa: E402

from cluster import runtime  # noqa: E402
from cluster.errors import ApiError  # noqa: E402
from portal import chores, kubernetes, probes, process, production, services  # noqa: E402
from portal.body_limit import BodyLimit  # noqa: E402
from portal.live import board  # noqa: E402
from portal.live.consumer import LiveConsumer  # noqa: E402
from portal.live.hub import hub  # noqa: E402
from portal.live.publisher import publisher  # noqa: E402
from portal.live.sessions import authorization  # noqa: E402
from portal.metrics import web  # noqa: E402


async def _lifespan(scope: Any, receive: Any, send: Any) -> None:
    """Tie the publisher to the server's loop for as long as that runs."""
    reading: asyncio.Task[None] | None = None
    probed: ThreadingHTTPServer | None = None
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            if refused := production.refusal():
                await send({"type": "lifespan.startup.failed", "message": refused})
                return
            if settings.BASALT_CLUSTER == "kubernetes":
                try:
                    runtime.use(services.checked())
                except ApiError as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                chores.begin()
                if board.is_used():
                    publisher.post = board.post
                    reading = asyncio.create_task(board.Reader(lambda: hub().is_heard).run())
            if settings.BASALT_WEB_LISTEN:
                try:
                    probed = process.probes(settings.BASALT_WEB_LISTEN, lambda: "", probes.trouble)
                except CommandError as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                web.watch(hub())
            publisher.attach(asyncio.get_running_loop())
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            publisher.attach(None)
            chores.end()
            if reading is not None:
                reading.cancel()
            await hub().stop()
            if probed is not None:
                await asyncio.to_thread(probed.shutdown)
                probed.server_close()
            await send({"type": "lifespan.shutdown.complete"})
            return


_bodies = BodyLimit(_pages)


async def _http(scope: Any, receive: Any, send: Any) -> None:
    """Pages and API; and the cluster itself for those who speak as Kubernetes does."""
    serve = kubernetes.application if scope["path"].startswith(f"{kubernetes.PREFIX}/") else _bodies
    await serve(scope, receive, send)


_programs = URLRouter([path("ws/live/", LiveConsumer.as_asgi())])
_browsers = AllowedHostsOriginValidator(SessionMiddlewareStack(_programs))


async def _sockets(scope: Any, receive: Any, send: Any) -> None:
    """A handshake with a token comes from a program, and no cookie counts: there is no page whose origin must be ours."""
    serve = _programs if authorization(scope) else _browsers
    await serve(scope, receive, send)


application = ProtocolTypeRouter({"http": _http, "websocket": _sockets, "lifespan": _lifespan})
