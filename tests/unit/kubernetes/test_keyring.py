"""The webhook's certificates: made, shared, trusted before they are served, renewed while it serves."""

from __future__ import annotations

import asyncio
import base64
import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from testbed.fake_server import FakeServer

from fairlead.kubernetes.admission.keyring import (
    Chain,
    Keyring,
    Lifetimes,
    Pair,
    chain_in,
    is_due,
    names_of,
    renewed,
    written,
)
from fairlead.kubernetes.client import Client

NAMES = ("fairlead-webhook.fairlead.svc", "127.0.0.1")
START = datetime(2026, 1, 1, tzinfo=UTC)
LIFETIMES = Lifetimes(authority=timedelta(days=300), server=timedelta(days=90))


def chain_at(days: float, chain: Chain | None = None) -> Chain:
    """The chain that many days after the start."""
    return renewed(chain, NAMES, START + timedelta(days=days), LIFETIMES)


# -- lifetimes --------------------------------------------------------------------------------------------------------


def test_a_good_chain_is_kept() -> None:
    """Until a third of the server's time is left; then only the server's certificate is new."""
    first = chain_at(0)
    assert chain_at(59, first) is first
    later = chain_at(61, first)
    assert later.authority == first.authority
    assert later.server != first.server
    assert not is_due(later.server.parsed, START + timedelta(days=61))


def test_a_new_authority_leaves_the_old_one_trusted_until_it_ends() -> None:
    """Replicas that have not heard of it serve what the old one signed."""
    first = chain_at(0)
    second = chain_at(201, first)
    assert second.authority != first.authority
    assert second.bundle(START + timedelta(days=201)) == second.authority.certificate + first.authority.certificate
    assert second.bundle(START + timedelta(days=301)) == second.authority.certificate
    assert chain_at(261, second).earlier == first.authority.certificate


def test_no_certificate_outlives_its_authority() -> None:
    """Nor would anybody trust it longer."""
    short = Lifetimes(authority=timedelta(days=10), server=timedelta(days=90))
    chain = renewed(None, NAMES, START, short)
    assert chain.server.parsed.not_valid_after_utc <= chain.authority.parsed.not_valid_after_utc


def test_other_names_need_another_certificate() -> None:
    """The service was renamed; addresses are names too."""
    first = chain_at(0)
    assert names_of(first.server.parsed) == NAMES
    other = renewed(first, ("other.svc",), START, LIFETIMES)
    assert other.authority == first.authority
    assert names_of(other.server.parsed) == ("other.svc",)


def test_a_broken_chain_is_replaced() -> None:
    """Half of another one, or no certificate at all."""
    one, two = chain_at(0), chain_at(0)
    broken = [
        Chain(one.authority, two.server),
        Chain(one.authority, Pair(one.server.certificate, two.server.key)),
        Chain(Pair(b"x", b"y"), one.server),
        Chain(one.authority, one.server, b"x"),
    ]
    assert [chain_at(0, chain).authority in (one.authority, two.authority) for chain in broken] == [False] * 4


def test_the_secret_holds_the_whole_chain() -> None:
    """And what is no base64, or is not complete, is none."""
    chain = chain_at(201, chain_at(0))
    data = written(chain)

    class Held:
        def __init__(self, data: dict[str, str]) -> None:
            self.data = data

    assert chain_in(Held(data)) == chain
    assert chain_in(Held({**data, "tls.crt": "%"})) is None
    assert chain_in(Held({**data, "tls.key": ""})) is None
    assert chain_in(None) is None


# -- sharing and trust ------------------------------------------------------------------------------------------------


class Site:
    """A server with a webhook configuration, and a clock that a test moves."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.now = START
        self.server.put("mutatingwebhookconfigurations", {
            "metadata": {"name": "fairlead"}, "webhooks": [{"name": "pods.fairlead.io", "clientConfig": {}}],
        })  # fmt: skip

    def keyring(self, lifetimes: Lifetimes = LIFETIMES) -> Keyring:
        return Keyring(
            Client(self.server),
            namespace="fairlead",
            secret="certs",
            configuration="fairlead",
            names=NAMES,
            now=lambda: self.now,
            lifetimes=lifetimes,
        )

    def bundle(self) -> bytes:
        found: Any = self.server.one("mutatingwebhookconfigurations", "fairlead", "")
        return base64.b64decode(found["webhooks"][0]["clientConfig"].get("caBundle", ""))


async def test_replicas_share_what_the_first_one_made() -> None:
    """And the API server is told to trust it."""
    site = Site()
    one, two = site.keyring(), site.keyring()
    await asyncio.gather(one.look(), two.look())
    assert one.chain == two.chain
    assert one.chain is not None
    assert site.bundle() == one.chain.authority.certificate
    assert one.trusted
    assert [entry[1] for entry in site.server.log.entries if entry[2] == "secrets"] == ["create"]


async def test_looking_again_writes_nothing() -> None:
    """Nothing is due."""
    site = Site()
    keyring = site.keyring()
    await keyring.look()
    written_before = len(site.server.log.entries)
    await keyring.look()
    assert len(site.server.log.entries) == written_before


async def test_a_replica_is_trusted_while_another_renews_the_authority() -> None:
    """The one that has not looked yet serves a certificate of the old authority, which stays in the bundle."""
    site = Site()
    slow, quick = site.keyring(), site.keyring()
    await slow.look()
    site.now += timedelta(days=80)
    await slow.look()
    site.now += timedelta(days=121)
    await quick.look()
    assert slow.chain is not None
    assert quick.chain is not None
    assert quick.chain.authority != slow.chain.authority
    trusted = x509.load_pem_x509_certificates(site.bundle())
    for chain in (slow.chain, quick.chain):
        assert any(chain.server.parsed.issuer == authority.subject for authority in trusted)
    await slow.look()
    assert slow.chain == quick.chain


async def test_a_bundle_that_somebody_took_away_comes_back() -> None:
    """An installation that is applied anew must not end the trust."""
    site = Site()
    keyring = site.keyring()
    await keyring.look()
    good = site.bundle()
    site.server.put("mutatingwebhookconfigurations", {
        "metadata": {"name": "fairlead"}, "webhooks": [{"name": "pods.fairlead.io", "clientConfig": {}}],
    })  # fmt: skip
    await keyring.look()
    assert site.bundle() == good


async def test_without_a_configuration_nobody_trusts_it() -> None:
    """It is not ready then, and looks again."""
    site = Site()
    site.server.remove("mutatingwebhookconfigurations", "fairlead")
    keyring = site.keyring()
    await keyring.look()
    assert keyring.chain is not None
    assert not keyring.trusted


async def test_a_running_server_serves_the_renewed_certificate() -> None:
    """New connections get it, and a client that trusts the bundle alone accepts both."""
    site = Site()
    # Both renewals lie in the past of this machine's clock, which judges all three.
    site.now = datetime.now(UTC) - timedelta(days=70)
    keyring = site.keyring(Lifetimes(authority=timedelta(days=100), server=timedelta(days=90)))
    await keyring.look()

    async def close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0, ssl=keyring.context)
    port = server.sockets[0].getsockname()[1]
    async with server:
        first = await served(port, site.bundle())
        site.now += timedelta(days=61)
        await keyring.look()
        second = await served(port, site.bundle())
        site.now += timedelta(days=6)
        await keyring.look()
        third = await served(port, site.bundle())
    serials = [x509.load_der_x509_certificate(found).serial_number for found in (first, second, third)]
    assert len(dict.fromkeys(serials)) == 3


async def served(port: int, bundle: bytes) -> bytes:
    """The certificate that a new connection is shown, if the bundle makes it good for this address."""
    trust = ssl.create_default_context(cadata=bundle.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return bytes(found)
