"""The certificate of a service: read from its files, tried by a handshake with itself, and read anew when they change.

Decides whether a certificate and its key can be used, and from when on. Never listens, and never says anything of the
key. Invariant: a pair that callers would refuse is not taken: not at the start, which fails then, and not later, when
the one from before goes on and the reason is among the service's problems.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import stat
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

log = logging.getLogger("fairlead.service")

LOOK_S = 1.0
"""Between two looks at the files. A change counts when two looks find the same."""
SOON_S = 14 * 86_400
"""Before its end this is said."""
_CERTIFICATE, _KEY = b"-----BEGIN CERTIFICATE-----", b"PRIVATE KEY-----"
_EXPIRED, _TOO_EARLY = 10, 9
"""OpenSSL's numbers for what is wrong with a certificate."""


class CertificateError(Exception):
    """The files cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate that can be used, as it was read."""

    context: ssl.SSLContext
    names: tuple[str, ...]
    """Names and addresses that it is for."""
    ends_at_s: float
    """The last second of its time, in seconds since 1970."""


class Certificate:
    """The pair that new connections get. Read it anew with `watch`."""

    def __init__(self, cert: Path, key: Path | None = None) -> None:
        """`key`: None: it is in the file of the certificate. Raises `CertificateError`."""
        self.cert, self.key = cert.absolute(), (key or cert).absolute()
        self._refused = ""
        self._read_as = self._looks()
        self._pair = read_pair(self.cert, self.key)

    @property
    def context(self) -> ssl.SSLContext:
        """For the next connection."""
        return self._pair.context

    def host(self, address: str) -> str:
        """The name under which callers find it: the first that it is for, where one is a name; else the address."""
        if address in self._pair.names:
            return address
        return next((name for name in self._pair.names if not name.startswith("*") and _is_name(name)), address)

    def problems(self) -> list[str]:
        """What is wrong with it at the moment, as sentences."""
        left_s = self._pair.ends_at_s - time.time()
        ends = datetime.fromtimestamp(self._pair.ends_at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
        found = [self._refused]
        if left_s <= 0:
            found.append(f"the certificate {self.cert} is over since {ends}: callers refuse it; put a new one there")
        elif left_s < SOON_S:
            found.append(f"the certificate {self.cert} is over at {ends}; put a new one there before")
        found.append(_open_key(self.key))
        return [sentence for sentence in found if sentence]

    async def watch(self, look_s: float = LOOK_S) -> None:
        """Read it anew whenever its files change, and while they cannot be used, until cancelled.

        What is wrong may pass without a change of the files: their modes, or a time that has not begun.
        """
        before = self._read_as
        while True:
            await asyncio.sleep(look_s)
            now = self._looks()
            if now == before and (now != self._read_as or self._refused):
                self._read_as = now
                await asyncio.to_thread(self._renew)
            before = now

    def _renew(self) -> None:
        try:
            self._pair = read_pair(self.cert, self.key)
        except CertificateError as problem:
            before, self._refused = self._refused, f"the new certificate is not used, the one before it is: {problem}"
            if self._refused != before:
                log.warning("%s", self._refused)
        else:
            self._refused = ""
            log.info("the certificate is %s of %s now", ", ".join(self._pair.names) or "without a name", self.cert)

    def _looks(self) -> list[tuple[int, int, int]]:
        """What changes when the files do."""
        found = []
        for path in (self.cert, self.key):
            try:
                about = path.stat()
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((about.st_ino, about.st_mtime_ns, about.st_size))
        return found


def read_pair(cert: Path, key: Path) -> Pair:
    """A certificate with its key. Raises `CertificateError` if callers would refuse it."""
    for path, part, what in ((cert, _CERTIFICATE, "certificate"), (key, _KEY, "private key")):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise CertificateError(f"the {what} {path} cannot be read: {error.strerror}") from error
        if part not in content:
            raise CertificateError(f"{path} holds no {what} in the PEM format")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert, key, password=_refuse_to_ask)
    except _Locked:
        raise CertificateError(
            f"the key {key} is locked with a passphrase, which a service cannot be asked for; "
            f"unlock it: openssl pkey -in {key} -out NEW"
        ) from None
    except ssl.SSLError as error:
        raise CertificateError(_not_loaded(error, cert, key)) from error
    except OSError as error:
        raise CertificateError(_gone(error, cert, key)) from error
    try:
        shown = _shown_to_a_caller(context, cert)
    except ssl.SSLError as error:
        raise CertificateError(_not_verified(error, cert)) from error
    except OSError as error:
        raise CertificateError(_gone(error, cert, key)) from error
    names = tuple(value for kind, value in shown.get("subjectAltName", ()) if kind in ("DNS", "IP Address"))
    return Pair(context, names, ssl.cert_time_to_seconds(shown["notAfter"]))


class _Locked(Exception):
    pass


def _refuse_to_ask() -> bytes:
    raise _Locked


def _not_loaded(error: ssl.SSLError, cert: Path, key: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"the key {key} does not belong to the certificate {cert}"
    return f"the certificate {cert} and the key {key} cannot be used: {_reason(error)}"


def _gone(error: OSError, cert: Path, key: Path) -> str:
    """They could be read a moment ago, and are being replaced."""
    return f"the certificate {cert} and the key {key} cannot be read: {error.strerror}"


def _not_verified(error: ssl.SSLError, cert: Path) -> str:
    code = getattr(error, "verify_code", 0)
    if code == _EXPIRED:
        return f"the time of the certificate {cert} is over; put a new one there"
    if code == _TOO_EARLY:
        return f"the time of the certificate {cert} has not begun; look at it, and at this machine's clock"
    return f"callers would refuse the certificate {cert}: {getattr(error, 'verify_message', '') or _reason(error)}"


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()


def _shown_to_a_caller(server: ssl.SSLContext, cert: Path) -> dict[str, Any]:
    """What a caller sees who trusts this very certificate. Raises `ssl.SSLError`: it sees why not."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(cafile=cert)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    calling = client.wrap_bio(to_client, to_server)
    called = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [calling, called]
    while waiting:
        for one in list(waiting):
            try:
                one.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(one)
    shown: dict[str, Any] = calling.getpeercert() or {}
    return shown


def _is_name(text: str) -> bool:
    return not text.replace(".", "").isdecimal() and ":" not in text


def _open_key(key: Path) -> str:
    try:
        is_open = key.stat().st_mode & stat.S_IROTH
    except OSError:
        return ""
    return f"everybody on this machine can read the key {key}; run: chmod o-r {key}" if is_open else ""
