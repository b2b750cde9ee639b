"""The client: thin, by hand, typed by the rows that the server answers with."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Self, cast

import httpx

from basalt.client import live, logs
from basalt.client.resources import Blueprints, Drains, Jobs, Queues, Resource
from basalt.client.rows import About, Applied, CronRow, EventRow, FlowRow, NodeRow, PodRow, TemplateRow, Token
from basalt.client.transport import Query, Transport

__all__ = ["Client"]


class Client:
    """One server and one user. Every method raises what `basalt.client.errors` names, nothing else."""

    def __init__(
        self, server: str, token: str = "", *, ca: str = "", timeout: float = 30.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._transport = Transport(server, token, ca=ca, timeout=timeout, transport=transport)
        self.server = self._transport.server
        self._listening: list[Generator[live.Message | None, None, None]] = []
        self.jobs = Jobs(self._transport, "jobs")
        self.blueprints = Blueprints(self._transport)
        self.queues = Queues(self._transport, "queues")
        self.pods: Resource[PodRow] = Resource(self._transport, "pods")
        self.nodes: Resource[NodeRow] = Resource(self._transport, "nodes")
        self.drains = Drains(self._transport)
        self.flows: Resource[FlowRow] = Resource(self._transport, "jobflows")
        self.templates: Resource[TemplateRow] = Resource(self._transport, "jobtemplates")
        self.crons: Resource[CronRow] = Resource(self._transport, "cronjobs")
        self.events: Resource[EventRow] = Resource(self._transport, "events")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back, those of live channels too."""
        while self._listening:
            self._listening.pop().close()
        self._transport.close()

    def about(self) -> About:
        """Which Basalt this is, for whom it answers, and its time; also a check of the token."""
        return cast(About, self._transport.get("about"))

    def login(self, name: str, password: str) -> Token:
        """A token for a name and a password. Raises SignedOut when they are wrong."""
        return cast(Token, self._transport.send("POST", "auth/login", auth=(name, password)))

    def logout(self) -> None:
        """End this client's token."""
        self._transport.send("POST", "auth/logout")

    def apply(self, text: str, *, namespace: str = "", dry_run: bool = False) -> list[Applied]:
        """Create or change what documents name: all, or with Refused none."""
        query: Query = {"namespace": namespace, "dryRun": "All" if dry_run else ""}
        answer = self._transport.send("POST", "apply", text, query) if dry_run else self._transport.create("apply", text, query)
        return cast(list[Applied], answer["results"])

    def logs(
        self,
        job: str,
        namespace: str = "default",
        *,
        still: Callable[[], bool] = lambda: False,
        on_trouble: Callable[[str], None] | None = None,
        **query: str | int | bool | None,
    ) -> Iterator[logs.Line]:
        """The lines of a job's pods, by the API's parameters: task, pod, container, follow, tailLines, sinceSeconds, previous.

        Followed, they go on while containers run, and as long as `still` says that others will.
        """
        return logs.read(self._transport, job, namespace, query, still=still, on_trouble=on_trouble)

    def listen(
        self,
        topics: Mapping[str, Sequence[str] | None],
        *,
        tick: float | None = None,
        on_trouble: Callable[[str], None] | None = None,
    ) -> Iterator[live.Message | None]:
        """Messages of live topics: jobs, job:<uid>, queues, topology."""
        messages = live.listen(self._transport, topics, tick=tick, on_trouble=on_trouble)
        self._listening.append(messages)
        return messages
