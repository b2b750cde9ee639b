"""Names by Kubernetes's rules."""

from __future__ import annotations

import pytest

from cluster.names import is_dns_label, is_dns_subdomain
from cluster.selectors import is_label_key


@pytest.mark.parametrize("text", ["a", "0-9", "a" * 63])
def test_labels(text: str) -> None:
    assert is_dns_label(text)


@pytest.mark.parametrize("text", ["", "-a", "a-", "A", "a.b", "a_b", "a\n", "ä", "a" * 64])
def test_what_is_no_label(text: str) -> None:
    assert not is_dns_label(text)


def test_a_subdomain_is_limited_as_a_whole_and_not_by_the_word() -> None:
    long = "a" * 64 + ".example"
    assert is_dns_subdomain(long)
    assert is_label_key(f"{long}/name")
    assert not is_dns_subdomain("a" * 254)
    assert not is_label_key("a" * 254 + "/name")


@pytest.mark.parametrize("text", ["", "a..b", ".a", "a.", "a.-b", "a/b"])
def test_what_is_no_subdomain(text: str) -> None:
    assert not is_dns_subdomain(text)
    assert not is_label_key(f"{text}/name")
