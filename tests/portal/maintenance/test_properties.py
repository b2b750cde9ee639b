"""Whatever is on a node: after a drain nobody is there who should have gone, and nobody is gone who should have stayed."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster import objects
from cluster.kinds import DAEMON_SET, POD, REPLICA_SET
from cluster.leaving import has_local_data, has_to_go, is_bare
from portal.maintenance.models import Drain, DrainState
from tests.portal.maintenance.world import LOCAL, Site

pytestmark = pytest.mark.django_db(databases="__all__")

MIRROR = {"kubernetes.io/config.mirror": "x"}
PODS = st.lists(
    st.tuples(
        st.sampled_from((None, REPLICA_SET, DAEMON_SET)), st.booleans(), st.booleans(),
        st.sampled_from(("Running", "Succeeded", "Failed")), st.sampled_from(("n0", "n1")), st.booleans(),
    ),
    max_size=8,
)  # fmt: skip


@given(pods=PODS, gang=st.integers(0, 3), least=st.integers(0, 3), bare=st.booleans(), local=st.booleans(), turn=st.booleans())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_a_drain_who_should_have_gone_is_gone_and_who_should_stay_stays(db, pods, gang, least, bare, local, turn):
    site = Site()
    try:
        user, _made = get_user_model().objects.get_or_create(username="boss", defaults={"is_staff": True})
        Drain.objects.all().delete()
        if gang:
            site.run("gang", gang, gpu=1, cpu=1, least=1)
        for place, (by, mirror, keeps, phase, node, labelled) in enumerate(pods):
            notes = {"annotations": MIRROR} if mirror else {}
            more = {"labels": {"app": "db"}} if labelled else {}
            site.put(f"p{place}", node, by=by, spec=LOCAL if keeps else None, phase=phase, **notes, **more)
        site.budget("db", least, app="db")
        before = {objects.uid(pod): pod for pod in site.cluster.list(POD, fields="spec.nodeName=n0").items}
        drain = site.drain(user, "n0", bare=True, local_data=True)
        Drain.objects.update(bare=bare, local_data=local, in_turn=turn)  # as if they had come after it was begun
        for _ in range(6):
            site.look()
            site.rest()
        drain.refresh_from_db()
        after = {objects.uid(pod) for pod in site.cluster.list(POD, fields="spec.nodeName=n0").items}
        stay = {uid for uid, pod in before.items() if not has_to_go(pod)}
        unasked = {uid for uid, pod in before.items() if (is_bare(pod) and not bare) or (has_local_data(pod) and not local)}
        kept = {each["uid"] for each in drain.nodes.get().held}
        assert stay <= after, "who should stay is gone"
        assert unasked <= after, "who was not asked for is gone"
        assert after <= set(before), "somebody came"
        left = after - stay
        assert left == kept, "who should go is there, and nothing is said of it"
        assert (drain.state == DrainState.DONE) == (not left)
        healthy = sum(
            objects.labels(pod).get("app") == "db" and (pod.get("status") or {}).get("phase") == "Running"
            for pod in site.cluster.list(POD).items
        )
        assert healthy >= min(least, sum(each[5] and each[3] == "Running" for each in pods)), "the budget is broken"
    finally:
        site.close()
