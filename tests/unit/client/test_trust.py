"""Which certificates a client believes."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from testbed.certificates import make_certificate

from fairlead.client.address import Address
from fairlead.client.trust import trusting


def test_a_file_of_ones_own_is_read_as_curl_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python from 3.13 on is strict by itself: it takes no certificate that names no key of its authority."""
    strict = ssl.create_default_context()
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: strict)
    ca = make_certificate(tmp_path, "authority", authority=True).cert
    address = Address(scheme="https", host="127.0.0.1", port=1, ca=str(ca))
    assert trusting(address) is strict
    assert not strict.verify_flags & ssl.VERIFY_X509_STRICT
