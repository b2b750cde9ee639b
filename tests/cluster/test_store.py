"""What the embedded store does beyond the port's shared suite."""

from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import CONFIG_MAP, NAMESPACE


def test_a_namespace_is_made_on_first_use(cluster: EmbeddedCluster) -> None:
    cluster.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "team"}})
    assert cluster.get(NAMESPACE, "team")["status"] == {"phase": "Active"}
