"""Certificates from files, as cert-manager leaves them: the newest that fits is served."""

from __future__ import annotations

import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlead.kubernetes.admission import mounted
from fairlead.kubernetes.admission.keyring import Pair, new_authority, new_server
from fairlead.kubernetes.admission.mounted import MountedCertificates, UnusableCertificate

NOW = datetime.now(UTC)


def written(folder: Path, days: int, key_of: Pair | None = None) -> Pair:
    """A new certificate in the folder; with the key of another one if that is given."""
    lasts = timedelta(days=days)
    pair = new_server(new_authority(NOW, lasts), ("hook",), NOW, lasts)
    (folder / mounted.CERTIFICATE).write_bytes(pair.certificate)
    (folder / mounted.KEY).write_bytes((key_of or pair).key)
    return pair


async def test_a_new_certificate_is_served_when_it_is_there(tmp_path: Path) -> None:
    """By connections that come after it."""
    first = written(tmp_path, 10)
    found = MountedCertificates(tmp_path)
    await found.look()
    assert found.expires == first.parsed.not_valid_after_utc
    second = written(tmp_path, 20)
    await found.look()
    assert found.expires == second.parsed.not_valid_after_utc
    assert _served(found.context) == second.parsed.serial_number


async def test_half_of_a_new_one_changes_nothing(tmp_path: Path) -> None:
    """The certificate is there and its key is not yet: the one before is served on."""
    first = written(tmp_path, 10)
    found = MountedCertificates(tmp_path)
    await found.look()
    written(tmp_path, 20, key_of=first)
    with pytest.raises(UnusableCertificate, match=str(tmp_path)):
        await found.look()
    assert found.expires == first.parsed.not_valid_after_utc
    assert _served(found.context) == first.parsed.serial_number


async def test_what_is_missing_or_no_certificate_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnusableCertificate, match=r"tls\.crt"):
        await MountedCertificates(tmp_path).look()
    (tmp_path / mounted.CERTIFICATE).write_text("nothing")
    (tmp_path / mounted.KEY).write_text("nothing")
    with pytest.raises(UnusableCertificate):
        await MountedCertificates(tmp_path).look()


def _served(context: ssl.SSLContext) -> int:
    """The serial number of what a server with this context shows, without a network."""
    from cryptography import x509

    blind = ssl.create_default_context()
    blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = blind.wrap_bio(back, there, server_side=False)
    server = context.wrap_bio(there, back, server_side=True)
    for _ in range(10):
        for end in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    shown = client.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown).serial_number
