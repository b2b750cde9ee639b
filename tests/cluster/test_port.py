"""The port's suite over the embedded store, in memory and with its table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.admission import Admission
from cluster.embedded.store import EmbeddedCluster
from cluster.embedded.table import StoreTable
from tests.cluster.port_suite import PortSuite


class TestInMemory(PortSuite):
    """Without a table, with every app's admission rules."""

    @pytest.fixture
    def port(self, cluster: EmbeddedCluster) -> EmbeddedCluster:
        return cluster


@pytest.mark.django_db(databases="__all__", transaction=True)
class TestWithTable(PortSuite):
    """Written through; and what was written comes back as it was."""

    @pytest.fixture
    def port(self) -> Iterator[EmbeddedCluster]:
        table = StoreTable()
        cluster = EmbeddedCluster(table=table, admission=Admission())
        yield cluster
        version, objects = table.load()
        again = EmbeddedCluster(admission=Admission(), start=(version, objects))
        kinds = {kind for kind, _ in objects}
        assert {kind: again.list(kind).items for kind in kinds} == {kind: cluster.list(kind).items for kind in kinds}
        table.close()
