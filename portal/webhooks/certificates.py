"""Certificates of the webhooks: an authority of our own and the server's certificate, as PEM. Pure, save for chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS = 3650
SERVER_DAYS = 90
SKEW = timedelta(minutes=10)
"""Certificates hold from a little before they are made: clocks of machines differ."""
_AUTHORITY_NAME = "Basalt webhooks"


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    @property
    def parsed(self) -> x509.Certificate:
        """The certificate. Raises ValueError for what is none."""
        return x509.load_pem_x509_certificate(self.certificate)

    @property
    def ends(self) -> datetime:
        """The instant after which it does not hold."""
        return self.parsed.not_valid_after_utc


def new_authority(now: datetime, days: int = AUTHORITY_DAYS) -> Pair:
    """An authority that signs certificates of servers, and nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(_AUTHORITY_NAME)
    usage = _usage(key_cert_sign=True, crl_sign=True)
    built = (
        _builder(name, name, key, now, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Pair(_pem(built.sign(key, hashes.SHA256())), _key_pem(key))


def new_server(authority: Pair, hosts: Sequence[str], now: datetime, days: int = SERVER_DAYS) -> Pair:
    """A server's certificate for host names and IP addresses, by an authority. Its end is not after the authority's."""
    key, issuer = ec.generate_private_key(ec.SECP256R1()), authority.parsed
    signer = _load_key(authority.key)
    built = (
        _builder(_name(hosts[0]), issuer.subject, key, now, days, latest=issuer.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return Pair(_pem(built.sign(signer, hashes.SHA256())), _key_pem(key))


def wrong_with(server: Pair, authority: Pair, hosts: Iterable[str], now: datetime) -> str:
    """Why a server's certificate has to be made anew, in a few words; empty while it serves."""
    try:
        certificate, issuer = server.parsed, authority.parsed
        own = _load_key(server.key).public_key() == certificate.public_key()
    except (ValueError, TypeError) as error:
        return f"it cannot be read: {error}"
    if not own:
        return "its key is another one's"
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return "it is of another authority"
    if named(certificate) != set(hosts):
        return "it is for other names"
    return "its end is near" if is_due(certificate, now) else ""


def is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether less than a third of its life is left."""
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return now >= certificate.not_valid_after_utc - life / 3


def named(certificate: x509.Certificate) -> set[str]:
    """The hosts that a certificate is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {*names.get_values_for_type(x509.DNSName), *(str(found) for found in names.get_values_for_type(x509.IPAddress))}


def still_valid(bundle: bytes, now: datetime) -> list[bytes]:
    """The certificates of a bundle that have not ended, each as PEM. Raises ValueError for what is no bundle."""
    return [_pem(found) for found in x509.load_pem_x509_certificates(bundle) if found.not_valid_after_utc > now]


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Any, now: datetime, days: int, latest: datetime | None = None
) -> x509.CertificateBuilder:
    ends = now + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(min(ends, latest) if latest else ends)
    )


def _usage(**given: bool) -> x509.KeyUsage:
    known = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{usage: given.get(usage, False) for usage in known})


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _load_key(pem: bytes) -> Any:
    return serialization.load_pem_private_key(pem, None)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: Any) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
