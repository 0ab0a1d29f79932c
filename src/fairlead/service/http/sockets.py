"""The sockets that a service listens on.

Decides whether an address is free, and whether it may be listened on without TLS. Never answers anything, and never
takes an address away from a service that answers on it. Invariant: a socket file that is removed is one that nobody
listened on.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.tls.certificate import Certificate, CertificateError

BACKLOG = 2048
LONGEST_PATH = 107
"""What the kernel takes as the path of a Unix socket, in bytes."""
GONE_S = 2.0
"""A service that was killed leaves processes for moments that have its sockets still: so long that is waited for."""
AGAIN_S = 0.05
ASKING = b"GET /healthz HTTP/1.0\r\n\r\n"


class ListenError(Exception):
    """An address cannot be used; the text says why and what to do."""


def on_unix(path: Path) -> socket.socket:
    """A listening Unix socket that every user of the machine may connect to. Raises `ListenError`."""
    try:
        is_left_over = _require_free(path)
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if is_left_over:
            path.unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))
        # Who may do what is decided by the peer's credentials, so everybody may knock.
        path.chmod(0o666)
        listening.listen(BACKLOG)
    except OSError as error:
        raise _cannot(path, error) from error
    listening.setblocking(False)
    return listening


def require_free(path: Path) -> None:
    """Raises `ListenError` where `on_unix` could not listen; makes and removes nothing."""
    try:
        _require_free(path)
        above = next(each for each in path.parents if os.path.lexists(each))
        if not above.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{above} is no directory")
        if not os.access(above, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, f"{above} is not writable for you")
    except OSError as error:
        raise _cannot(path, error) from error


def _require_free(path: Path) -> bool:
    """Whether a socket was left there that nobody listens on. Raises `ListenError` for anything else, and OSError."""
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise ListenError(
            f"the socket path {path} is longer than {LONGEST_PATH} bytes; choose a shorter one (--socket)"
        )
    try:
        about = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(about.st_mode):
        raise ListenError(f"{path} is there and is no socket; move it away, or choose another with --socket")
    end = time.monotonic() + GONE_S
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(max(end - time.monotonic(), AGAIN_S))
            try:
                probe.connect(str(path))
                probe.sendall(ASKING)
                if probe.recv(1):
                    break
            except ConnectionRefusedError:
                return True
            except OSError:
                pass  # Nobody takes it any more, or not in time.
        time.sleep(AGAIN_S)
    raise ListenError(f"a service answers on {path} already; stop it, or choose another with --socket")


def _cannot(path: Path, error: OSError) -> ListenError:
    return ListenError(f"cannot listen on {path}: {error.strerror}; choose another with --socket")


def on_tcp(host: str, port: int, *, beyond_loopback: bool = False) -> socket.socket:
    """A listening TCP socket; `beyond_loopback`: other machines may reach it. Raises `ListenError`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ListenError(f"{host!r} is no address to listen on: {error.strerror}") from error
    except UnicodeError as error:
        raise ListenError(f"{host!r} is no address to listen on: it is no name of a host") from error
    if not beyond_loopback and not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        raise ListenError(
            f"{host} is reached from other machines, and without TLS tokens and output could be read on the way; "
            f"give a certificate (--tls-cert FILE --tls-key FILE), or say --allow-plain-http if that is as it should be"
        )
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _bind(listening, address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        in_use = error.errno == errno.EADDRINUSE
        advice = "is another service running? Choose another with --port" if in_use else "choose another with --port"
        raise ListenError(f"cannot listen on {host} port {port}: {error.strerror}; {advice}") from error
    listening.setblocking(False)
    return listening


def _bind(listening: socket.socket, address: Any) -> None:
    """Have the address; one in use may be that of a service that was just killed. Raises OSError."""
    end = time.monotonic() + GONE_S
    while True:
        try:
            listening.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= end:
                raise
            time.sleep(AGAIN_S)
        else:
            return


@dataclass(frozen=True, slots=True)
class Tcp:
    """How a service is reached over TCP."""

    host: str = "127.0.0.1"
    certificate: Certificate | None = None
    allow_plain: bool = False
    """Other machines may reach it without TLS, too."""

    @classmethod
    def of(cls, host: str, cert: Path | None, key: Path | None, *, allow_plain: bool = False) -> Tcp:
        """With the certificate in these files. Raises `ListenError`."""
        if cert is None and key is not None:
            raise ListenError(f"the key {key} needs a certificate; give --tls-cert FILE, too")
        try:
            return cls(host, Certificate(cert, key) if cert is not None else None, allow_plain)
        except CertificateError as problem:
            raise ListenError(str(problem)) from problem

    def listen(self, port: int) -> socket.socket:
        """A socket that listens on this port; 0: any free one. Raises `ListenError`."""
        return on_tcp(self.host, port, beyond_loopback=self.allow_plain or self.certificate is not None)

    def url(self, listening: socket.socket) -> str:
        """The URL of one that does; with a certificate by a name that it is for."""
        host, port = listening.getsockname()[:2]
        scheme, host = ("https", self.certificate.host(host)) if self.certificate is not None else ("http", host)
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def remove_socket(path: Path, inode: int) -> None:
    """Remove a socket file, if it is still the one that was made; one that the disk keeps the next start replaces."""
    with contextlib.suppress(OSError):
        if path.lstat().st_ino == inode:
            path.unlink()
