"""Certificates: made, known when they are due, kept in Secrets, and trusted before they are shown."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import SECRET
from portal.webhooks import certificates, install
from portal.webhooks.definitions import CONFIGURATIONS, MUTATING, SERVICE, VALIDATING, Wanted, Where, configurations
from portal.webhooks.keeping import Names, keep
from portal.webhooks.server import Certificates
from testbed.server import binary

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NAMES = Names("basalt-system", ("basalt-webhook.basalt-system.svc", "127.0.0.1"))
ROOT = Path(__file__).parents[3]


def days(count: float) -> timedelta:
    return timedelta(days=count)


def test_a_certificate_serves_its_names_for_two_thirds_of_its_life() -> None:
    authority = certificates.new_authority(NOW)
    server = certificates.new_server(authority, NAMES.hosts, NOW)
    assert certificates.named(server.parsed) == set(NAMES.hosts)
    assert certificates.wrong_with(server, authority, NAMES.hosts, NOW + days(59)) == ""
    assert certificates.wrong_with(server, authority, NAMES.hosts, NOW + days(61)) == "its end is near"
    assert certificates.wrong_with(server, authority, ["other"], NOW) == "it is for other names"
    assert certificates.wrong_with(server, certificates.new_authority(NOW), NAMES.hosts, NOW) == "it is of another authority"
    other = certificates.Pair(server.certificate, authority.key)
    assert certificates.wrong_with(other, authority, NAMES.hosts, NOW) == "its key is another one's"
    broken = certificates.Pair(b"x", server.key)
    assert certificates.wrong_with(broken, authority, NAMES.hosts, NOW).startswith("it cannot be read")


def test_a_certificate_does_not_outlive_its_authority() -> None:
    authority = certificates.new_authority(NOW, days=10)
    assert certificates.new_server(authority, ["a"], NOW).ends == authority.ends


def secret(cluster: EmbeddedCluster, name: str) -> dict[str, bytes]:
    return {key: b64decode(text) for key, text in cluster.get(SECRET, name, "basalt-system")["data"].items()}


def test_keeping_makes_what_is_missing_and_then_leaves_it() -> None:
    cluster = EmbeddedCluster()
    first = keep(cluster, NAMES, now=NOW)
    assert [line.partition(",")[0] for line in first.done] == [
        "Secret basalt-webhook-ca: an authority was made",
        "Secret basalt-webhook: a certificate was made",
    ]
    assert secret(cluster, "basalt-webhook")["tls.crt"] == first.server.certificate
    assert secret(cluster, "basalt-webhook")["ca.crt"] == first.bundle == secret(cluster, "basalt-webhook-ca")["tls.crt"]
    again = keep(cluster, NAMES, now=NOW + days(30))
    assert (again.done, again.server) == ([], first.server)
    later = keep(cluster, NAMES, now=NOW + days(61))
    assert [line.partition(";")[0] for line in later.done] == ["Secret basalt-webhook: a certificate was made, its end is near"]
    assert later.bundle == first.bundle


def test_an_authority_that_is_replaced_stays_trusted_until_it_ends() -> None:
    cluster = EmbeddedCluster()
    first = keep(cluster, NAMES, now=NOW)
    late = NOW + days(certificates.AUTHORITY_DAYS - 100)
    second = keep(cluster, NAMES, now=late)
    assert second.bundle == secret(cluster, "basalt-webhook-ca")["tls.crt"] + first.bundle
    assert second.server.parsed.issuer == certificates.new_authority(NOW).parsed.subject
    third = keep(cluster, NAMES, now=late + days(101))
    assert third.bundle == secret(cluster, "basalt-webhook-ca")["tls.crt"]
    assert secret(cluster, "basalt-webhook")["ca.crt"] == third.bundle


@pytest.mark.parametrize("broken", ["basalt-webhook", "basalt-webhook-ca"])
def test_what_was_spoilt_is_made_anew(broken: str) -> None:
    cluster = EmbeddedCluster()
    keep(cluster, NAMES, now=NOW)
    cluster.patch(SECRET, broken, "basalt-system", {"data": {"tls.key": b64encode(b"rubbish").decode()}})
    done = keep(cluster, NAMES, now=NOW).done
    assert next(line.partition(":")[0] for line in done) == f"Secret {broken}"
    assert keep(cluster, NAMES, now=NOW).done == []


def test_a_new_pair_is_taken_up_and_half_of_one_is_not(tmp_path: Path) -> None:
    found = Certificates(tmp_path)
    assert not found.look()
    assert "there is no certificate" in found.trouble()
    authority = certificates.new_authority(datetime.now(UTC))
    one, two = (certificates.new_server(authority, ["localhost"], datetime.now(UTC), days) for days in (3, 5))
    (tmp_path / "tls.crt").write_bytes(one.certificate)
    (tmp_path / "tls.key").write_bytes(one.key)
    assert (found.look(), found.ends, found.trouble()) == (True, one.ends, "")
    (tmp_path / "tls.crt").write_bytes(two.certificate)
    assert (found.look(), found.ends) == (True, one.ends)
    (tmp_path / "tls.key").write_bytes(two.key)
    assert (found.look(), found.ends) == (True, two.ends)
    assert found.context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_pods_are_never_made_to_wait_and_own_kinds_never_written_unreviewed() -> None:
    found = [(obj["metadata"]["name"], webhook) for obj in configurations(Wanted()) for webhook in obj["webhooks"]]
    assert {(name, webhook["failurePolicy"]) for name, webhook in found} == {("basalt", "Fail"), ("basalt-pods", "Ignore")}
    for name, webhook in found:
        assert webhook["sideEffects"] == "None"
        resources = webhook["rules"][0]["resources"]
        assert (resources == ["pods"]) == (name == "basalt-pods")
        if webhook["rules"][0]["scope"] == "Namespaced":
            assert "basalt-system" in webhook["namespaceSelector"]["matchExpressions"][0]["values"]
        if resources == ["pods"]:
            assert '["volcano", "basalt"]' in webhook["matchConditions"][0]["expression"]
    old = [webhook for obj in configurations(Wanted(conditions=False)) for webhook in obj["webhooks"]]
    assert all("matchConditions" not in webhook for webhook in old)
    assert {str(w.get("objectSelector")) for w in old if "pods" in w["name"]} == {
        "{'matchLabels': {'basalt.dev/admission': 'review'}}"
    }


def test_an_address_outside_stands_in_place_of_a_service() -> None:
    outside = Wanted(Where(url="https://10.0.0.1:8443/"))
    addresses = {w["clientConfig"]["url"] for obj in configurations(outside) for w in obj["webhooks"]}
    assert addresses == {"https://10.0.0.1:8443/mutate", "https://10.0.0.1:8443/validate"}


def test_the_files_in_deploy_are_what_the_code_makes() -> None:
    for name, text in install.files(Wanted()):
        assert (ROOT / "deploy" / "webhooks" / name).read_text() == text, f"{name}: run manage.py install-webhooks --write"
    assert [kind for kind, _ in CONFIGURATIONS] == [MUTATING, VALIDATING] * 2


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ({"major": "1", "minor": "25"}, False),
        ({"major": "1", "minor": "28+"}, True),
        ({"major": "2", "minor": "0"}, True),
        ({}, False),
    ],
)
def test_conditions_are_for_servers_that_know_them(version: dict[str, str], known: bool) -> None:
    assert install.has_conditions(version) is known


def test_cert_manager_stands_in_for_the_command(tmp_path: Path) -> None:
    kubectl = binary("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl: set KUBEBUILDER_ASSETS to a folder that has it")
    shutil.copytree(ROOT / "deploy" / "webhooks", tmp_path / "webhooks")
    text = yaml.safe_dump({"resources": ["webhooks", "webhooks/pods"], "components": ["webhooks/cert-manager"]})
    (tmp_path / "kustomization.yaml").write_text(text)
    done = subprocess.run([kubectl, "kustomize", str(tmp_path)], capture_output=True, text=True, check=True)
    made = list(yaml.safe_load_all(done.stdout))
    (certificate,) = (obj for obj in made if obj["kind"] == "Certificate")
    assert certificate["spec"]["secretName"] == Names("", ()).secret
    assert f"{SERVICE}.basalt-system.svc" in certificate["spec"]["dnsNames"]
    injected = [obj for obj in made if obj["kind"] in (MUTATING.kind, VALIDATING.kind)]
    where = {obj["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] for obj in injected}
    assert (len(injected), where) == (4, {"basalt-system/basalt-webhook"})
