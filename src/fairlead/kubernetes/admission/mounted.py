"""Certificates that somebody else makes, such as cert-manager: files that are looked at again and again.

Decides when a new certificate is served. Never makes one, and never changes whom the API server trusts: who makes them
does that. Invariant: a certificate without the key that fits it is never served.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from datetime import datetime
from pathlib import Path

from cryptography import x509

from fairlead.kubernetes.access import use_certificate

log = logging.getLogger("fairlead.kubernetes")

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""The names in a Secret of type `kubernetes.io/tls`, and so in the folder where it is mounted."""
LOOK_S = 10.0


class UnusableCertificate(Exception):
    """The files hold no certificate that can be served; the text says which and why."""


class MountedCertificates:
    """The certificate in one folder."""

    def __init__(self, folder: Path) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """For the server; new connections get the newest certificate."""
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.trusted = True
        """Whoever makes the certificate sees to that."""
        self.expires: datetime | None = None
        """Until when what is served is good."""
        self._folder = folder
        self._served = (b"", b"")

    async def run(self) -> None:
        """Serve what is newest until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look()
            except UnusableCertificate as problem:
                log.warning("%s; the one before is served on", problem)

    async def look(self) -> None:
        """Serve what is in the folder. Raises `UnusableCertificate`."""
        try:
            found = (self._folder / CERTIFICATE).read_bytes(), (self._folder / KEY).read_bytes()
            if found == self._served:
                return
            # A context that refuses half of it must not be the one that serves.
            await asyncio.to_thread(use_certificate, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), *found)
            await asyncio.to_thread(use_certificate, self.context, *found)
            self.expires = x509.load_pem_x509_certificate(found[0]).not_valid_after_utc
        except OSError as problem:
            # An `SSLError` is one, too.
            raise UnusableCertificate(f"the certificate in {self._folder} cannot be used: {problem}") from problem
        except ValueError as problem:
            raise UnusableCertificate(f"{self._folder / CERTIFICATE} is no certificate: {problem}") from problem
        self._served = found
        log.info("serving a certificate that is good until %s", self.expires)
