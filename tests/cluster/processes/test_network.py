"""Addresses and names of pods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.embedded.processes import network


def pod(name, hostname="", subdomain="", labels=None, space="default"):
    spec = {"hostname": hostname, "subdomain": subdomain}
    return {"metadata": {"name": name, "namespace": space, "labels": labels or {}}, "spec": spec}


def service(name, selector, space="default"):
    return {"metadata": {"name": name, "namespace": space}, "spec": {"selector": selector}}


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=60))
def test_no_two_pods_share_an_address_and_each_keeps_its_own(steps):
    addresses = network.Addresses("run")
    held = {}
    for uid, stays in steps:
        if stays:
            address = addresses.of(uid)
            assert held.setdefault(uid, address) == address
        else:
            addresses.drop(uid)
            held.pop(uid, None)
        assert len(set(held.values())) == len(held)


def test_an_address_of_an_earlier_run_is_not_given_again():
    first = network.Addresses("run").of("a")
    later = network.Addresses("run")
    later.keep("a", first)
    assert later.of("a") == first
    assert later.of("b") != first


def test_a_pod_is_named_in_the_domain_of_its_service_only():
    pods = [(pod("w-0", "w-0", "job", {"job": "x"}), "127.16.0.1"), (pod("w-1", "w-1", "none"), "127.16.0.2")]
    text = network.names("default", pods, [service("job", {"job": "x"})])
    full = "w-0.job.default.svc.cluster.local w-0.job.default.svc w-0.job.default w-0.job"
    own = "job.default.svc.cluster.local job.default.svc job.default job"
    assert text == f"127.16.0.1\t{full}\n127.16.0.1\t{own}\n"


def test_other_namespaces_are_not_named():
    pods = [(pod("w-0", "w-0", "job", space="other"), "127.16.0.1")]
    assert network.names("default", pods, [service("job", {}, "other")]) == ""


def test_the_file_is_written_in_place_since_it_is_mounted(tmp_path):
    path = tmp_path / "hosts"
    network.write(path, "long text\n" * 9)
    before = path.stat().st_ino
    network.write(path, "short\n")
    assert (path.read_text(), path.stat().st_ino) == ("short\n", before)


def test_all_addresses_taken_is_said():
    addresses = network.Addresses("run")
    for number in range(65_024):
        addresses.of(str(number))
    with pytest.raises(LookupError):
        addresses.of("one more")
