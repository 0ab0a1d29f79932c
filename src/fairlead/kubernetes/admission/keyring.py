"""The keyring: the webhook's certificates, shared by its replicas, and the API server's trust in them.

Decides how long certificates are good for, when they are replaced, and in which order that becomes known. Never answers
a review. Invariant: a certificate is served only after the API server was told to trust its authority; whoever else
serves an older one is trusted on, for the authority before the newest stays in the bundle until its time is over.

Replicas share one Secret. Whoever writes it first wins; the others take what is there.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import logging
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairlead.kubernetes.access import use_certificate
from fairlead.kubernetes.client import ApiError, Client, Conflict, NotFound, Unreachable
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Labels, Metadata, Part, Text

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


log = logging.getLogger("fairlead.kubernetes")

LOOK_S = 20.0
"""How often the Secret and the trust are looked at."""
RETRY_S = 5.0
AUTHORITY, AUTHORITY_KEY, EARLIER, SERVER, SERVER_KEY = "ca.crt", "ca.key", "ca-before.crt", "tls.crt", "tls.key"


class Secret(Part, frozen=True):
    """Named bytes, in base64."""

    metadata: Metadata = Metadata()
    data: Labels = None


class WebhookClient(Part, frozen=True):
    """How the API server reaches a webhook."""

    ca_bundle: Text = None


class Webhook(Part, frozen=True):
    """One webhook."""

    name: str = ""
    client_config: WebhookClient = WebhookClient()


class WebhookConfiguration(Part, frozen=True):
    """Webhooks that the API server asks."""

    metadata: Metadata = Metadata()
    webhooks: list[Webhook] | None = None


SECRETS = Kind(Secret, "Secret", "v1", "secrets", True)
_GROUP = "admissionregistration.k8s.io/v1"
MUTATING = Kind(WebhookConfiguration, "MutatingWebhookConfiguration", _GROUP, "mutatingwebhookconfigurations", False)
VALIDATING = Kind(
    WebhookConfiguration, "ValidatingWebhookConfiguration", _GROUP, "validatingwebhookconfigurations", False
)


class Keyring:
    """The certificates of one replica."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        secret: str,
        configuration: str,
        names: tuple[str, ...],
        now: Callable[[], datetime],
        lifetimes: Lifetimes | None = None,
    ) -> None:
        """`configuration` is the name of both webhook configurations, `names` what the server is called."""
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """For the server; new connections get the newest certificate."""
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.chain: Chain | None = None
        """What is served."""
        self.trusted = False
        """Whether the API server has been told of it."""
        self._client = client
        self._namespace, self._secret, self._configuration = namespace, secret, configuration
        self._names = names
        self._now = now
        self._lifetimes = lifetimes or Lifetimes()

    @property
    def expires(self) -> datetime | None:
        """Until when what is served is good; None: nothing is."""
        return self.chain.server.parsed.not_valid_after_utc if self.chain is not None else None

    async def run(self) -> None:
        """Keep the certificates good until cancelled. What fails is tried again soon."""
        while True:
            try:
                await self.look()
                pause = LOOK_S
            except (ApiError, Unreachable) as e:
                log.warning("the webhook's certificates could not be looked after: %s", e)
                pause = RETRY_S
            await asyncio.sleep(pause if self.trusted else RETRY_S)

    async def look(self) -> None:
        """Take what is shared, renew what is due, have it trusted, serve it. Raises `ApiError`, `Unreachable`."""
        chain = await self._shared()
        self.trusted = await self._have_trusted(chain)
        if self.chain is None or chain.server != self.chain.server:
            await asyncio.to_thread(use_certificate, self.context, chain.server.certificate, chain.server.key)
            log.info("serving a certificate that is good until %s", chain.server.parsed.not_valid_after_utc)
        self.chain = chain

    async def _shared(self) -> Chain:
        """What the Secret holds, renewed and written back where need be."""
        while True:
            try:
                secret: Secret | None = await self._client.get(SECRETS, self._secret, self._namespace)
            except NotFound:
                secret = None
            held = chain_in(secret)
            chain = renewed(held, self._names, self._now(), self._lifetimes)
            if chain == held:
                return chain
            try:
                await self._write(chain, secret)
            except Conflict:
                # Another replica was faster.
                continue
            log.info("the webhook's certificates in secret %s/%s are new", self._namespace, self._secret)
            return chain

    async def _write(self, chain: Chain, secret: Secret | None) -> None:
        metadata: dict[str, Any] = {"name": self._secret, "namespace": self._namespace}
        body = {"metadata": metadata, "type": "Opaque", "data": written(chain)}
        if secret is None:
            await self._client.create(SECRETS, body, self._namespace)
            return
        metadata["resourceVersion"] = secret.metadata.resource_version
        metadata["labels"] = secret.metadata.labels or {}
        metadata["annotations"] = secret.metadata.annotations or {}
        await self._client.replace(SECRETS, body, self._secret, self._namespace)

    async def _have_trusted(self, chain: Chain) -> bool:
        """Put the bundle into the webhook configurations; False while there is none of that name."""
        bundle = base64.b64encode(chain.bundle(self._now())).decode()
        found = 0
        for kind in (MUTATING, VALIDATING):
            try:
                there: WebhookConfiguration = await self._client.get(kind, self._configuration)
            except NotFound:
                continue
            found += 1
            change = [
                {"name": webhook.name, "clientConfig": {"caBundle": bundle}}
                for webhook in there.webhooks or ()
                if webhook.client_config.ca_bundle != bundle
            ]
            if change:
                await self._client.patch(kind, self._configuration, {"webhooks": change})
                log.info("%s %s trusts the webhook's authority", kind.name, self._configuration)
        if not found:
            log.warning("there is no webhook configuration %s yet; nobody asks this webhook", self._configuration)
        return found > 0


def chain_in(secret: Secret | None) -> Chain | None:
    """The chain that a Secret holds; None when it holds none, or half of one."""
    found: dict[str, bytes] = {}
    for name, text in ((secret.data if secret is not None else None) or {}).items():
        try:
            found[name] = base64.b64decode(text, validate=True)
        except binascii.Error:
            return None
    if not all(found.get(name) for name in (AUTHORITY, AUTHORITY_KEY, SERVER, SERVER_KEY)):
        return None
    return Chain(
        Pair(found[AUTHORITY], found[AUTHORITY_KEY]), Pair(found[SERVER], found[SERVER_KEY]), found.get(EARLIER, b"")
    )


def written(chain: Chain) -> dict[str, str]:
    """The chain as a Secret holds it."""
    parts = {
        AUTHORITY: chain.authority.certificate,
        AUTHORITY_KEY: chain.authority.key,
        SERVER: chain.server.certificate,
        SERVER_KEY: chain.server.key,
        EARLIER: chain.earlier,
    }
    return {name: base64.b64encode(part).decode() for name, part in parts.items() if part}
