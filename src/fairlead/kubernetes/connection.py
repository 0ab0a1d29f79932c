"""Connections to a real API server over HTTP/1.1, and where it is and who we are there.

Decides address, trust and credentials (of a kubeconfig, or what a pod finds in itself), and how bytes are carried: kept
connections, TLS, tokens, time limits. Never looks into them. Tokens in files are read anew when they are rotated, and a
credential program is run again when what it gave is about to end. Errors of credentials name the file and what is
missing in it; every failure to get an answer is `Unreachable` with the address and the cause.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import yaml

from fairlead.kubernetes.client import Answer, Request, Unreachable, refusal
from fairlead.kubernetes.reflector import lines_of

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_S = 60.0
"""A token in a file is read again after so long."""
EXEC_S = 30.0
EXEC_MARGIN_S = 60.0


class AccessError(Exception):
    """The credentials cannot be used; the text says which file and why."""


@dataclass(slots=True)
class Access:
    """A server and how to speak to it."""

    server: str
    """Such as `https://10.0.0.1:6443`, without a slash at the end."""
    tls: ssl.SSLContext | None = None
    namespace: str = "default"
    """Where we are, for what belongs to a namespace and names none."""
    token: Callable[[], str] = field(default=lambda: "")
    """The bearer token of the moment; empty for none."""
    source: str = ""


def find_access(kubeconfig: str | None = None, context: str | None = None) -> Access:
    """The kubeconfig that is named, that of `KUBECONFIG`, ours when we are a pod, or `~/.kube/config`, in this order.

    Raises `AccessError`.
    """
    if kubeconfig:
        return from_kubeconfig(Path(kubeconfig), context)
    named = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    if named:
        return from_kubeconfig(Path(named), context)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and (SERVICE_ACCOUNT / "token").exists():
        return from_service_account(SERVICE_ACCOUNT)
    with contextlib.suppress(RuntimeError):  # a user of a container may have no home
        home = Path("~/.kube/config").expanduser()
        if home.exists():
            return from_kubeconfig(home, context)
    raise AccessError(
        "no cluster to speak to: give --kubeconfig FILE, set KUBECONFIG, or run inside a pod with a service account"
    )


def from_service_account(folder: Path) -> Access:
    """What a pod finds in itself. Raises `AccessError`."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        tls = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        namespace = (folder / "namespace").read_text().strip()
    except (OSError, ssl.SSLError) as e:
        raise AccessError(f"the service account in {folder} cannot be used: {_why(e)}") from e
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(server, tls, namespace, TokenFile(folder / "token"), f"service account in {folder}")


class TokenFile:
    """A token that somebody else renews in place."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = -TOKEN_S
        self._token = ""

    def __call__(self) -> str:
        """The token; of a file that cannot be read any more the last one."""
        now = time.monotonic()
        if now - self._read_at >= TOKEN_S:
            try:
                self._token = self._path.read_text().strip()
            except OSError as e:
                if not self._token:
                    raise AccessError(f"the token cannot be read: {_why(e)}") from e
            self._read_at = now
        return self._token


class TokenProgram:
    """A token (or nothing) that a program prints as an `ExecCredential`."""

    def __init__(self, rules: dict[str, Any], source: str) -> None:
        self._rules = rules
        self._source = source
        self._token = ""
        self._until = 0.0

    def status(self) -> dict[str, Any]:
        """Run the program and give back what it says. Raises `AccessError` with what it printed."""
        rules = self._rules
        command = [str(rules.get("command", "")), *map(str, rules.get("args") or [])]
        extra = {str(v["name"]): str(v["value"]) for v in rules.get("env") or []}
        request = {
            "apiVersion": rules.get("apiVersion"),
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        environment = {**os.environ, **extra, "KUBERNETES_EXEC_INFO": json.dumps(request)}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=EXEC_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            raise AccessError(f"{self._source}: the credential program {command[0]!r} failed: {_why(e)}") from e
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()[-300:]
            raise AccessError(
                f"{self._source}: the credential program {command[0]!r} ended with {done.returncode}: {said}"
            )
        try:
            status = json.loads(done.stdout)["status"]
        except (ValueError, KeyError, TypeError) as e:
            raise AccessError(f"{self._source}: {command[0]!r} printed no ExecCredential with a status") from e
        if not isinstance(status, dict):
            raise AccessError(f"{self._source}: {command[0]!r} printed no ExecCredential with a status")
        return status

    def __call__(self) -> str:
        """The token, asked for anew a minute before it ends."""
        if time.time() >= self._until:
            status = self.status()
            self._token = str(status.get("token") or "")
            self._until = _instant(status.get("expirationTimestamp")) - EXEC_MARGIN_S
        return self._token


def _instant(text: object) -> float:
    """Seconds since 1970; no time given means for ever."""
    if not isinstance(text, str):
        return float("inf")
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


# -- kubeconfig ---------------------------------------------------------------------------------------------------


def from_kubeconfig(path: Path, context: str | None = None) -> Access:
    """The current context of a kubeconfig, or the one that is named. Raises `AccessError`."""
    try:
        config = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as e:
        raise AccessError(f"kubeconfig {path} cannot be read: {_why(e).removesuffix(f': {path}')}") from e
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise AccessError(f"kubeconfig {path} is no YAML{where}: {getattr(e, 'problem', None) or _why(e)}") from e
    if not isinstance(config, dict):
        raise AccessError(f"kubeconfig {path} is empty or no kubeconfig")
    name = context or config.get("current-context") or ""
    chosen = _named(config, "contexts", "context", name, path)
    cluster = _named(config, "clusters", "cluster", chosen.get("cluster", ""), path)
    user = _named(config, "users", "user", chosen["user"], path) if chosen.get("user") else {}
    server = str(cluster.get("server") or "").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise AccessError(f"kubeconfig {path}: cluster {chosen.get('cluster')!r} has no server address")
    token, extra = _token(user, path)
    tls = _trust(cluster, {**user, **extra}, path) if server.startswith("https://") else None
    return Access(server, tls, str(chosen.get("namespace") or "default"), token, f"context {name!r} of {path}")


def _why(problem: Exception) -> str:
    """What went wrong, as one line."""
    if isinstance(problem, OSError) and problem.strerror and problem.filename:
        return f"{problem.strerror}: {problem.filename}"
    return (str(problem) or type(problem).__name__).partition("\n")[0]


def _named(config: dict[str, Any], plural: str, single: str, name: object, path: Path) -> dict[str, Any]:
    for entry in config.get(plural) or []:
        if isinstance(entry, dict) and entry.get("name") == name:
            found = entry.get(single)
            return found if isinstance(found, dict) else {}
    there = ", ".join(str(e.get("name")) for e in config.get(plural) or [] if isinstance(e, dict)) or "none"
    raise AccessError(f"kubeconfig {path}: no {single} named {name!r} (there: {there})")


def _token(user: dict[str, Any], path: Path) -> tuple[Callable[[], str], dict[str, Any]]:
    """How the user's token is found, and the certificate that a credential program gave, if any."""
    if user.get("token"):
        fixed = str(user["token"])
        return (lambda: fixed), {}
    if user.get("tokenFile"):
        file = TokenFile(path.parent / str(user["tokenFile"]))
        try:
            file()
        except AccessError as e:
            raise AccessError(f"kubeconfig {path}: {e}") from e
        return file, {}
    if isinstance(user.get("exec"), dict):
        program = TokenProgram(user["exec"], f"kubeconfig {path}")
        status = program.status()
        if status.get("clientCertificateData"):
            pair = {
                f"client-{name}-data": base64.b64encode(str(status[key]).encode()).decode()
                for name, key in (("certificate", "clientCertificateData"), ("key", "clientKeyData"))
                if status.get(key)
            }
            return (lambda: ""), pair
        return program, {}
    if user.get("username"):
        raise AccessError(f"kubeconfig {path}: API servers take no user name and password since 1.19")
    if user.get("auth-provider"):
        raise AccessError(f"kubeconfig {path}: auth-provider is no more; use a credential program (exec)")
    return (lambda: ""), {}


def _trust(cluster: dict[str, Any], user: dict[str, Any], path: Path) -> ssl.SSLContext:
    try:
        authority = _bytes(cluster, "certificate-authority", path)
        tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
        if cluster.get("insecure-skip-tls-verify"):
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        certificate, key = _bytes(user, "client-certificate", path), _bytes(user, "client-key", path)
        if certificate and key:
            use_certificate(tls, certificate, key)
    except (OSError, ssl.SSLError, ValueError) as e:
        raise AccessError(f"kubeconfig {path}: certificates cannot be used: {_why(e)}") from e
    return tls


def use_certificate(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Have new connections, also of a server that runs, show this certificate (PEM). Raises `OSError`, `SSLError`."""
    # The standard library takes a certificate from files only.
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        files = Path(folder) / "certificate", Path(folder) / "key"
        for file, content in zip(files, (certificate, key), strict=True):
            file.touch(mode=0o600)
            file.write_bytes(content)
        tls.load_cert_chain(*files)


def _bytes(entry: dict[str, Any], key: str, path: Path) -> bytes:
    if entry.get(f"{key}-data"):
        return base64.b64decode(str(entry[f"{key}-data"]), validate=True)
    if entry.get(key):
        return (path.parent / str(entry[key])).read_bytes()
    return b""


CONNECT_S = 10.0
AGENT = "fairlead"
"""How the server's audit log names us."""
AT_ONCE = 64
"""Requests in flight; watches have connections of their own."""


class Connection:
    """The transport to one server."""

    def __init__(self, access: Access, at_once: int = AT_ONCE) -> None:
        """Must be made inside a running event loop."""
        self._access = access
        tls = access.tls if access.tls is not None else False
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=at_once, ssl=tls, keepalive_timeout=60),
            auto_decompress=True,
        )
        self._watching = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls, force_close=True), read_bufsize=2**20
        )

    async def send(self, request: Request, timeout_s: float) -> Answer:
        """One request and its whole answer."""
        limits = aiohttp.ClientTimeout(total=timeout_s, connect=CONNECT_S)
        try:
            async with self._session.request(
                request.method,
                self._url(request),
                data=request.body or None,
                headers=self._headers(request),
                timeout=limits,
            ) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                return Answer(response.status, headers, await response.read())
        except (aiohttp.ClientError, AccessError, TimeoutError, OSError) as e:
            raise self._unreachable(request, e) from e

    @asynccontextmanager
    async def stream(self, request: Request, idle_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=idle_s)
        try:
            async with self._watching.request(
                request.method, self._url(request), headers=self._headers(request), timeout=limits
            ) as response:
                if response.status >= 300:
                    headers = {name.lower(): value for name, value in response.headers.items()}
                    raise refusal(response.status, await response.read(), headers)
                async with aclosing(lines_of(response.content.iter_any())) as lines:
                    yield lines
        except (aiohttp.ClientError, AccessError, TimeoutError, OSError) as e:
            raise self._unreachable(request, e) from e

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        await self._watching.close()
        # TLS connections close behind the scenes; the loop must turn once more for that.
        await asyncio.sleep(0)

    def _url(self, request: Request) -> str:
        query = f"?{urlencode(request.query)}" if request.query else ""
        return f"{self._access.server}{request.path}{query}"

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": AGENT}
        if request.body:
            headers["Content-Type"] = request.content_type
        token = self._access.token()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _unreachable(self, request: Request, cause: BaseException) -> Unreachable:
        return Unreachable(f"no answer from {self._access.server} to {request.method} {request.path}: {_said(cause)}")


def _said(cause: BaseException) -> str:
    """What went wrong, in the system's words and without what is said of the server anyway."""
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {cause.certificate_error}"
    if isinstance(cause, aiohttp.ClientConnectorError):
        number = cause.os_error.errno
        if number and number > 0 and not isinstance(cause.os_error, socket.gaierror):
            return os.strerror(number)
        return cause.os_error.strerror or str(cause.os_error)
    return str(cause) or type(cause).__name__
