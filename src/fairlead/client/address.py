"""Where the service is.

Decides which address a client uses: what is said in the call, then the environment, then the context of the
configuration, then the first usual place that exists. Never connects.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import msgspec

from fairlead import places
from fairlead.client.errors import Misconfigured


class Address(msgspec.Struct, frozen=True):
    """One place to connect to: a Unix socket, or a host and port."""

    socket: str = ""
    scheme: str = "http"
    host: str = ""
    """As it is looked up: an IPv6 address without brackets."""
    port: int = 0
    prefix: str = ""
    """Path in front of `/api`, for a service behind a proxy."""
    token: str = ""
    namespace: str = ""
    """Of pods that are named without one, on a cluster."""
    ca: str = ""
    """The file with the certificates that are believed over TLS, or the service's own; empty: those of the system."""

    def __str__(self) -> str:
        return self.socket or f"{self.scheme}://{self.authority}{self.prefix}"

    @property
    def authority(self) -> str:
        """Host and port, as HTTP says them."""
        if self.socket:
            return "localhost"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def variable(self) -> str:
        """The environment variable that names such an address."""
        return "FAIRLEAD_SOCKET" if self.socket else "FAIRLEAD_URL"

    @classmethod
    def of_url(cls, url: str, token: str = "", namespace: str = "", ca: str = "") -> Address:
        """`https://host:port/prefix` taken apart; `host:port` alone is `http`. Raises `Misconfigured` otherwise."""
        from urllib.parse import urlsplit

        example = f"write for example http://127.0.0.1:{places.DEFAULT_PORT}"
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            port = parts.port
            (parts.hostname or "").encode("idna")  # As whoever looks it up does: an empty part is no address either.
        except ValueError:
            raise Misconfigured(f"{url!r} is not an address; {example}") from None
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.query
            or parts.fragment
            or parts.username
            or not re.fullmatch(r"[!-~]*", parts.path)  # It would be cut at a blank, and is no path with other signs.
        ):
            raise Misconfigured(f"{url!r} is not an address; {example}")
        if port is None:
            port = 443 if parts.scheme == "https" else places.DEFAULT_PORT
        if ca and parts.scheme != "https":
            raise Misconfigured(f"a file of certificates is for https alone, and {url!r} is without TLS")
        return cls("", parts.scheme, parts.hostname, port, parts.path.rstrip("/"), token, namespace, ca)


def find_address(
    socket: str | None = None,
    url: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str] | None = None,
    ca: str | None = None,
) -> Address:
    """The address to use: what is said here, else FAIRLEAD_SOCKET, FAIRLEAD_URL or FAIRLEAD_CONTEXT, else the current
    context of the configuration, else the first usual place that exists.

    The last of these is the machine's own service (/run/fairlead.sock), so that everybody finds a shared one. `ca`,
    else FAIRLEAD_CA, goes before the file of certificates of a context. Raises `Misconfigured` for two places at once,
    a URL that is none, a context that is not there, a bad configuration, or `ca` where there is no TLS.
    """
    environ = os.environ if environ is None else environ
    found = _place(socket, url, context, environ)
    if found.scheme != "https":
        if ca:
            raise Misconfigured(f"--ca is for https alone, and {found} is without TLS; write https://, or no --ca")
        return found
    certificates = os.path.expanduser(ca or environ.get("FAIRLEAD_CA", "") or found.ca)
    return msgspec.structs.replace(found, ca=certificates)


def _place(socket: str | None, url: str | None, context: str | None, environ: Mapping[str, str]) -> Address:
    token = environ.get("FAIRLEAD_TOKEN", "").strip()
    said = _only("--socket", socket, "--url", url, "--context", context)
    if not said:
        names = ("FAIRLEAD_SOCKET", "FAIRLEAD_URL", "FAIRLEAD_CONTEXT")
        socket, url, context = (environ.get(name) for name in names)
        said = _only(*(part for name in names for part in (name, environ.get(name))))
    if url:
        return Address.of_url(url, token, environ.get("FAIRLEAD_NAMESPACE", ""))
    if socket:
        return Address(socket=os.path.expanduser(socket))
    file = places.client_config(environ)
    if context or os.path.exists(file):
        from pathlib import Path

        from fairlead.client.contexts import read_contexts

        if (found := read_contexts(Path(file)).chosen(context or "")) is not None:
            return found.address(token)
    own, shared = places.default_socket(environ), places.SYSTEM_SOCKET
    return Address(socket=shared if not os.path.exists(own) and os.path.exists(shared) else own)


def _only(*pairs: str | None) -> str:
    """The name of the one that is given; empty if none is. Raises `Misconfigured` for two."""
    given = [str(name) for name, value in zip(pairs[::2], pairs[1::2], strict=True) if value]
    if len(given) > 1:
        raise Misconfigured(f"{' and '.join(given)} name two places; give one of them")
    return given[0] if given else ""
