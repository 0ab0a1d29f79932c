"""Access: where a cluster's API server is, whether it is trusted, and who we are there.

Decides address, trust and credentials: those of kubeconfigs, or what a pod finds in itself. Never connects. Tokens in
files are read anew when they are rotated, and a credential program is run again when what it gave is about to end, or
is not known to the server.
Errors name the file and what is missing in it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import os
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

log = logging.getLogger("fairlead.kubernetes")

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_S = 60.0
"""A token in a file is read again after so long."""
EXEC_S = 30.0
EXEC_MARGIN_S = 60.0
EXEC_AGAIN_S = 10.0
"""A token that the server does not know is fetched anew, this often at most."""


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
    proxy: str = ""
    """Through which HTTP proxy the server is reached; empty: none."""
    tls_name: str = ""
    """What the server's certificate is issued to, where that is not its address."""
    impersonated: tuple[tuple[str, str], ...] = ()
    """Headers that say as whom we speak, where that is not ourselves."""


def find_access(kubeconfig: str | None = None, context: str | None = None) -> Access:
    """The kubeconfig that is named, those of `KUBECONFIG`, ours when we are a pod, or `~/.kube/config`, in this order.

    Of several files each name and setting is taken from the first that has it; files that are not there are passed
    over, as by kubectl, unless none is. Raises `AccessError`.
    """
    if kubeconfig:
        return from_kubeconfig(Path(kubeconfig), context=context)
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if named:
        return from_kubeconfig(*([path for path in named if path.exists()] or named), context=context)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and (SERVICE_ACCOUNT / "token").exists():
        return from_service_account(SERVICE_ACCOUNT)
    with contextlib.suppress(RuntimeError):  # a user of a container may have no home
        home = Path("~/.kube/config").expanduser()
        if home.exists():
            return from_kubeconfig(home, context=context)
    raise AccessError(
        "no cluster to speak to: give --kubeconfig FILE, set KUBECONFIG, or run inside a pod with a service account"
    )


def from_service_account(folder: Path) -> Access:
    """What a pod finds in itself. Raises `AccessError`."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        tls = _trusting(ssl.create_default_context(cafile=str(folder / "ca.crt")))
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


class CredentialProgram:
    """A token, or a certificate, that a program prints as an `ExecCredential`."""

    def __init__(self, rules: dict[str, Any], source: str) -> None:
        self._rules = rules
        self._source = source
        self._token = ""
        self.pair: tuple[bytes, bytes] | None = None
        """The certificate and its key (PEM), if it gives one. It is another object once that is another one."""
        self.tls: ssl.SSLContext | None = None
        """What shows the certificate to the server."""
        self._fetched_at = -EXEC_AGAIN_S
        self._ends = 0.0
        self._fetching: asyncio.Task[str] | None = None

    def _status(self) -> dict[str, Any]:
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
        """The token, asked for anew a minute before it ends, as is the certificate. Raises `AccessError`."""
        if time.time() >= self._ends - EXEC_MARGIN_S:
            status = self._status()
            self._show(tuple(str(status.get(f"client{part}Data") or "").encode() for part in ("Certificate", "Key")))
            self._token = str(status.get("token") or "")
            self._ends = _instant(status.get("expirationTimestamp"))
            self._fetched_at = time.monotonic()
        return self._token

    async def fresh(self) -> str:
        """As a call, while the loop goes on: the program may take long. Meanwhile a token that has not ended serves."""
        now = time.time()
        if now < self._ends - EXEC_MARGIN_S:
            return self._token
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(asyncio.to_thread(self), name="credential program")
            self._fetching.add_done_callback(_said)
        return self._token if now < self._ends else await asyncio.shield(self._fetching)

    def _show(self, pair: tuple[bytes, ...]) -> None:
        """From now on show this certificate, where there is one and it is another."""
        certificate, key = pair
        if not (certificate and key) or pair == self.pair:
            return
        if self.tls is not None:
            try:
                use_certificate(self.tls, certificate, key)
            except (OSError, ssl.SSLError) as e:
                raise AccessError(f"{self._source}: the certificate of the program cannot be used: {_why(e)}") from e
        self.pair = (certificate, key)

    def unknown(self, token: str) -> None:
        """A server does not know this token (empty: this certificate), whatever was said of its end."""
        if token == self._token and time.monotonic() - self._fetched_at >= EXEC_AGAIN_S:
            self._ends = 0.0


def _said(fetching: asyncio.Task[str]) -> None:
    """Also where nobody waits for it: why the program gave no token."""
    if not fetching.cancelled() and (problem := fetching.exception()) is not None:
        log.warning("%s", problem)


def _instant(text: object) -> float:
    """Seconds since 1970; no time given means for ever."""
    if not isinstance(text, str):
        return float("inf")
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


# -- kubeconfig ---------------------------------------------------------------------------------------------------


def from_kubeconfig(*paths: Path, context: str | None = None) -> Access:
    """The current context of these kubeconfigs, or the one that is named. Raises `AccessError`."""
    configs = [(path, _read(path)) for path in paths]
    name = context or next(filter(None, (config.get("current-context") for _, config in configs)), "")
    path, chosen = _named(configs, "contexts", "context", name)
    path, cluster = _named(configs, "clusters", "cluster", chosen.get("cluster", ""))
    source = f"context {name!r} of {path}"
    server = str(cluster.get("server") or "").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise AccessError(f"kubeconfig {path}: cluster {chosen.get('cluster')!r} has no server address")
    of_user, user = _named(configs, "users", "user", chosen["user"]) if chosen.get("user") else (path, {})
    token, extra = _token(user, of_user)
    tls = _trust(cluster, path, {**user, **extra}, of_user) if server.startswith("https://") else None
    if isinstance(token, CredentialProgram):
        token.tls = tls
    return Access(
        server,
        tls,
        str(chosen.get("namespace") or "default"),
        token,
        source,
        proxy=_proxy(cluster, path),
        tls_name=str(cluster.get("tls-server-name") or ""),
        impersonated=tuple(_impersonated(user, of_user)),
    )


def _read(path: Path) -> dict[str, Any]:
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
    return config


def _proxy(cluster: dict[str, Any], path: Path) -> str:
    proxy = str(cluster.get("proxy-url") or "")
    if proxy and not proxy.startswith(("http://", "https://")):
        raise AccessError(f"kubeconfig {path}: proxy-url {proxy!r} is no HTTP proxy; write http://HOST:PORT")
    return proxy


def _impersonated(user: dict[str, Any], path: Path) -> Iterator[tuple[str, str]]:
    """The headers by which the server takes us for somebody else."""
    who, groups, more = user.get("as"), user.get("as-groups") or [], user.get("as-user-extra") or {}
    if not who and (user.get("as-uid") or groups or more):
        raise AccessError(f"kubeconfig {path}: as-uid, as-groups and as-user-extra need `as`, the name of a user")
    if who:
        yield "Impersonate-User", str(who)
    if user.get("as-uid"):
        yield "Impersonate-Uid", str(user["as-uid"])
    for group in groups:
        yield "Impersonate-Group", str(group)
    for key, values in more.items():
        yield from ((f"Impersonate-Extra-{quote(str(key), safe='')}", str(value)) for value in values)


def _why(problem: Exception) -> str:
    """What went wrong, as one line."""
    if isinstance(problem, OSError) and problem.strerror and problem.filename:
        return f"{problem.strerror}: {problem.filename}"
    return (str(problem) or type(problem).__name__).partition("\n")[0]


def _named(
    configs: list[tuple[Path, dict[str, Any]]], plural: str, single: str, name: object
) -> tuple[Path, dict[str, Any]]:
    """The first entry of this name, and the file that has it."""
    for path, config in configs:
        for entry in config.get(plural) or []:
            if isinstance(entry, dict) and entry.get("name") == name:
                found = entry.get(single)
                return path, found if isinstance(found, dict) else {}
    entries = [e for _, config in configs for e in config.get(plural) or [] if isinstance(e, dict)]
    there = ", ".join(str(e.get("name")) for e in entries) or "none"
    files = ", ".join(str(path) for path, _ in configs)
    raise AccessError(f"kubeconfig {files}: no {single} named {name!r} (there: {there})")


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
        program = CredentialProgram(user["exec"], f"kubeconfig {path}")
        program()
        names = ("client-certificate-data", "client-key-data")
        return program, {n: base64.b64encode(each).decode() for n, each in zip(names, program.pair or (), strict=False)}
    if user.get("username"):
        raise AccessError(f"kubeconfig {path}: API servers take no user name and password since 1.19")
    if user.get("auth-provider"):
        raise AccessError(f"kubeconfig {path}: auth-provider is no more; use a credential program (exec)")
    return (lambda: ""), {}


def _trust(cluster: dict[str, Any], path: Path, user: dict[str, Any], of_user: Path) -> ssl.SSLContext:
    try:
        authority = _bytes(cluster, "certificate-authority", path)
        tls = _trusting(ssl.create_default_context(cadata=authority.decode() if authority else None))
        if cluster.get("insecure-skip-tls-verify"):
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        certificate, key = _bytes(user, "client-certificate", of_user), _bytes(user, "client-key", of_user)
        if certificate and key:
            use_certificate(tls, certificate, key)
    except (OSError, ssl.SSLError, ValueError) as e:
        raise AccessError(f"kubeconfig {path}: certificates cannot be used: {_why(e)}") from e
    return tls


def _trusting(tls: ssl.SSLContext) -> ssl.SSLContext:
    """As kubectl trusts: from 3.13 on Python alone refuses what names no key of its authority, as many clusters' do."""
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
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
