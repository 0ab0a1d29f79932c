"""Certificates: an authority of our own and what it signs for the webhook.

Decides how long each is good for and when it is time for the next. Never stores or serves them. Invariant: whoever
trusts the bundle trusts every certificate that a replica may still be serving: the authority before the newest stays in
it until its time is over.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATED = timedelta(minutes=5)
"""Clocks differ a little."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long certificates are good for. They are replaced when a third of that is left."""

    authority: timedelta = timedelta(days=730)
    server: timedelta = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    @property
    def parsed(self) -> x509.Certificate:
        """The certificate. Raises `ValueError`."""
        return x509.load_pem_x509_certificate(self.certificate)


@dataclass(frozen=True, slots=True)
class Chain:
    """All that replicas share."""

    authority: Pair
    server: Pair
    earlier: bytes = b""
    """The certificate of the authority before; empty for none."""

    def bundle(self, now: datetime) -> bytes:
        """What the API server has to trust."""
        earlier = self.earlier
        if earlier and x509.load_pem_x509_certificate(earlier).not_valid_after_utc <= now:
            earlier = b""
        return self.authority.certificate + earlier


def renewed(chain: Chain | None, names: Iterable[str], now: datetime, lifetimes: Lifetimes) -> Chain:
    """The same chain while it is good, else the next one. `names` are what the server is called."""
    wanted = tuple(names)
    if chain is None or not _usable(chain):
        authority = new_authority(now, lifetimes.authority)
        return Chain(authority, new_server(authority, wanted, now, lifetimes.server))
    if is_due(chain.authority.parsed, now):
        authority = new_authority(now, lifetimes.authority)
        return Chain(authority, new_server(authority, wanted, now, lifetimes.server), chain.authority.certificate)
    if is_due(chain.server.parsed, now) or names_of(chain.server.parsed) != wanted:
        return Chain(chain.authority, new_server(chain.authority, wanted, now, lifetimes.server), chain.earlier)
    return chain


def is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether a third or less of its time is left."""
    begin, end = certificate.not_valid_before_utc + BACKDATED, certificate.not_valid_after_utc
    return now >= end - (end - begin) / 3


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """The names that it is good for, in order."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in found)


def new_authority(now: datetime, lifetime: timedelta) -> Pair:
    """An authority that signs for this webhook and nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial is in the name: two authorities in one bundle must be told apart.
    serial = x509.random_serial_number()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"fairlead webhook authority {serial % 2**32:08x}")])
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = (
        _begun(name, name, key, serial, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Pair(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), _key_text(key))


def new_server(authority: Pair, names: tuple[str, ...], now: datetime, lifetime: timedelta) -> Pair:
    """A certificate for the names (or addresses), signed by the authority; it never outlives it."""
    issuer, signing = authority.parsed, serialization.load_pem_private_key(authority.key, None)
    assert isinstance(signing, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fairlead webhook")])
    lasts = min(lifetime, issuer.not_valid_after_utc - now)
    builder = (
        _begun(name, issuer.subject, key, x509.random_serial_number(), now, lasts)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_general_name(text) for text in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
    )
    return Pair(builder.sign(signing, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), _key_text(key))


def _begun(
    name: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    serial: int,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now.astimezone(UTC) - BACKDATED)
        .not_valid_after(now.astimezone(UTC) + lifetime)
    )


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _usable(chain: Chain) -> bool:
    """Whether all of it can be read and belongs together."""
    try:
        authority, server = chain.authority.parsed, chain.server.parsed
        if chain.earlier:
            x509.load_pem_x509_certificate(chain.earlier)
        server.verify_directly_issued_by(authority)
        keys = [serialization.load_pem_private_key(pair.key, None) for pair in (chain.authority, chain.server)]
    except (ValueError, TypeError, InvalidSignature):
        return False
    return all(
        key.public_key() == certificate.public_key() for key, certificate in zip(keys, (authority, server), strict=True)
    )
