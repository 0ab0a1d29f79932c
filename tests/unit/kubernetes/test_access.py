"""Credentials: kubeconfigs, tokens in files, credential programs, and what is said when they cannot be used."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from testbed.certificates import make_certificate

from fairlead.kubernetes import access
from fairlead.kubernetes.access import Access, AccessError, CredentialProgram, TokenFile, find_access, from_kubeconfig
from fairlead.kubernetes.client import Request, Unreachable
from fairlead.kubernetes.connection import Connection


def write(folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    path = folder / "config"
    path.write_text(
        yaml.safe_dump({
            "current-context": "one",
            "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443/", **cluster}}],
            "users": [{"name": "u", "user": user}],
        })
    )  # fmt: skip
    return path


def test_a_token_in_the_file(tmp_path: Path) -> None:
    """Server without a slash at the end, namespace of the context, token of the user."""
    found = from_kubeconfig(write(tmp_path, {"token": "abc"}))
    assert (found.server, found.namespace, found.token()) == ("https://10.0.0.1:6443", "team", "abc")
    assert found.tls is not None


def test_a_certificate_is_refused_for_what_kubectl_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python from 3.13 on is strict by itself: it takes none that names no key of its authority."""
    strict = ssl.create_default_context()
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: strict)
    found = from_kubeconfig(write(tmp_path, {"token": "abc"}))
    assert found.tls is strict
    assert not strict.verify_flags & ssl.VERIFY_X509_STRICT


def test_plain_http_has_no_tls(tmp_path: Path) -> None:
    """A proxy on this machine."""
    assert from_kubeconfig(write(tmp_path, {}, server="http://127.0.0.1:8001")).tls is None


def test_a_token_file_is_read_again_when_it_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new token counts a minute later; a file that is gone leaves the last one."""
    clock = [1000.0]
    monkeypatch.setattr(access.time, "monotonic", lambda: clock[0])
    path = tmp_path / "token"
    path.write_text("one\n")
    token = TokenFile(path)
    assert token() == "one"
    path.write_text("two\n")
    assert token() == "one"
    clock[0] += 61
    assert token() == "two"
    path.unlink()
    clock[0] += 61
    assert token() == "two"


def program(folder: Path, body: str) -> dict[str, Any]:
    path = folder / "credentials"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "args": ["x"]}}


def test_a_credential_program_is_run(tmp_path: Path) -> None:
    """It prints an ExecCredential with a token."""
    said = json.dumps(
        {"kind": "ExecCredential", "status": {"token": "t", "expirationTimestamp": "2999-01-01T00:00:00Z"}}
    )
    assert from_kubeconfig(write(tmp_path, program(tmp_path, f"echo '{said}'"))).token() == "t"


@pytest.mark.parametrize(
    ("body", "said"),
    [("echo no; echo because >&2; exit 3", "ended with 3: because"), ("echo []", "no ExecCredential")],
)
def test_a_credential_program_that_fails_is_named(tmp_path: Path, body: str, said: str) -> None:
    """With what it printed."""
    with pytest.raises(AccessError, match=said):
        from_kubeconfig(write(tmp_path, program(tmp_path, body)))


@pytest.mark.parametrize(
    ("user", "said"),
    [({"username": "a", "password": "b"}, "since 1.19"), ({"auth-provider": {"name": "gcp"}}, "exec")],
)
def test_what_clusters_no_longer_take_is_refused(tmp_path: Path, user: dict[str, Any], said: str) -> None:
    """With what to use instead."""
    with pytest.raises(AccessError, match=said):
        from_kubeconfig(write(tmp_path, user))


def test_errors_name_the_file_and_what_is_there(tmp_path: Path) -> None:
    """A context that is not there; a file that is none; certificates that are none."""
    path = write(tmp_path, {})
    with pytest.raises(AccessError, match="no context named 'two'"):
        from_kubeconfig(path, context="two")
    with pytest.raises(AccessError, match="cannot be read"):
        from_kubeconfig(tmp_path / "missing")
    with pytest.raises(AccessError, match="certificates"):
        from_kubeconfig(write(tmp_path, {}, **{"certificate-authority-data": "bm90IG9uZQ=="}))
    path.write_text("[]")
    with pytest.raises(AccessError, match="no kubeconfig"):
        from_kubeconfig(path)


def test_nothing_found_says_what_to_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither option, nor variable, nor pod, nor file."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(AccessError, match="--kubeconfig"):
        find_access()
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path, {"token": "k"})))
    assert find_access().token() == "k"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"not: [yaml\n", "is no YAML in line 2: expected ',' or ']', but got '<stream end>'"),
        (b"\x00\x01", "is no YAML: unacceptable character #x0000: special characters are not allowed"),
        (b"\xff\xfe\xfd", "cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_is_none_is_one_sentence(tmp_path: Path, text: bytes | None, said: str) -> None:
    """On one line, with the place, and without the system's numbers."""
    path = tmp_path / "config"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(AccessError) as refused:
        from_kubeconfig(path)
    assert said in str(refused.value)
    assert str(refused.value).count(str(path)) == 1
    assert "\n" not in str(refused.value)
    assert "Errno" not in str(refused.value)


def test_a_token_file_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    """Not when the first request is sent."""
    with pytest.raises(AccessError, match="the token cannot be read: No such file or directory"):
        from_kubeconfig(write(tmp_path, {"tokenFile": "missing"}))


def test_a_user_without_a_home_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    with pytest.raises(AccessError, match="no cluster to speak to"):
        find_access()


def test_several_files_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each name the first counts; a file that is not there is passed over, and paths are those of their own file."""
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    (folders[1] / "token").write_text("second")
    first = {"contexts": [{"name": "mine", "context": {"cluster": "c", "user": "u"}}], "current-context": "mine"}
    (folders[0] / "config").write_text(yaml.safe_dump(first))
    second = write(folders[1], {"tokenFile": "token"})
    missing = tmp_path / "missing"
    monkeypatch.setenv("KUBECONFIG", f"{missing}:{folders[0] / 'config'}::{second}")
    found = find_access()
    assert (found.server, found.token(), found.namespace) == ("https://10.0.0.1:6443", "second", "default")
    assert find_access(context="one").namespace == "team"
    with pytest.raises(AccessError, match=r"no context named 'other' \(there: mine, one\)"):
        find_access(context="other")
    monkeypatch.setenv("KUBECONFIG", str(missing))
    with pytest.raises(AccessError, match="missing cannot be read"):
        find_access()


def test_a_proxy_a_name_of_the_server_and_somebody_else(tmp_path: Path) -> None:
    """Nothing of a kubeconfig is passed over in silence."""
    user = {"token": "t", "as": "ada", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"x/y": ["1"]}}
    found = from_kubeconfig(write(tmp_path, user, **{"proxy-url": "http://proxy:3128", "tls-server-name": "api"}))
    assert (found.proxy, found.tls_name) == ("http://proxy:3128", "api")
    assert found.impersonated == (
        ("Impersonate-User", "ada"), ("Impersonate-Uid", "7"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"),
        ("Impersonate-Extra-x%2Fy", "1"),
    )  # fmt: skip
    with pytest.raises(AccessError, match="socks5://proxy:1' is no HTTP proxy"):
        from_kubeconfig(write(tmp_path, {}, **{"proxy-url": "socks5://proxy:1"}))
    with pytest.raises(AccessError, match="need `as`"):
        from_kubeconfig(write(tmp_path, {"as-groups": ["a"]}))


async def test_what_is_sent_says_as_whom_and_goes_through_the_proxy(tmp_path: Path) -> None:
    """The proxy gets the whole address; each group is a header of its own."""
    seen: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    more = {"server": "http://api.example", "proxy-url": f"http://127.0.0.1:{port}"}
    transport = Connection(from_kubeconfig(write(tmp_path, {"as": "ada", "as-groups": ["a", "b"]}, **more)))
    try:
        answer = await transport.send(Request("GET", "/version", {}), 5)
    finally:
        await transport.close()
        server.close()
    assert answer.status == 200
    lines = seen[0].decode().split("\r\n")
    assert lines[0] == "GET http://api.example/version HTTP/1.1"
    assert [line for line in lines if line.startswith("Impersonate")] == [
        "Impersonate-User: ada", "Impersonate-Group: a", "Impersonate-Group: b",
    ]  # fmt: skip


async def test_a_token_that_the_server_does_not_know_any_more_is_fetched_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the program said nothing of its end; and one that is never known is not fetched all the time."""
    seen: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        seen.append(head.partition("Bearer ")[2].partition("\r\n")[0])
        writer.write(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    counter = tmp_path / "times"
    body = f"""echo x >> {counter}; echo '{{"status": {{"token": "t'$(wc -l < {counter} | tr -d ' ')'"}}}}'"""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    transport = Connection(from_kubeconfig(write(tmp_path, program(tmp_path, body), server=address)))
    try:
        for again_s in (60.0, 60.0, 0.0, 60.0):
            monkeypatch.setattr(access, "EXEC_AGAIN_S", again_s)
            await transport.send(Request("GET", "/version", {}), 30)
    finally:
        await transport.close()
        server.close()
    assert seen == ["t1", "t1", "t1", "t2"]


async def test_a_credential_program_that_takes_long_holds_up_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is renewed by the same loop, and who has a token that has not ended does not wait for another."""
    monkeypatch.setattr(access, "EXEC_S", 10.0)
    go, said = tmp_path / "go", {"token": "t", "expirationTimestamp": "2999-01-01T00:00:00Z"}
    body = f"while [ ! -e {go} ]; do sleep 0.02; done; echo '{json.dumps({'status': said})}'"
    source = CredentialProgram(program(tmp_path, body)["exec"], "here")
    transport = Connection(Access("http://127.0.0.1:1", token=source))
    asyncio.get_running_loop().call_later(0.05, go.touch)
    with pytest.raises(Unreachable, match="Connection refused"):
        await transport.send(Request("GET", "/version", {}), 30)
    go.unlink()
    monkeypatch.setattr(access, "EXEC_MARGIN_S", 1e12)
    with pytest.raises(Unreachable, match="Connection refused"):
        await transport.send(Request("GET", "/version", {}), 30)
    go.touch()
    await transport.close()


async def test_a_certificate_of_a_credential_program_is_fetched_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute before it ends; also connections that are kept open show the new one. It was never fetched again."""
    authority = make_certificate(tmp_path, "authority", authority=True)
    serving = make_certificate(tmp_path, "server", "127.0.0.1", by=authority)
    for name in ("one", "two"):
        make_certificate(tmp_path, name, by=authority)
    shown: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while await reader.readuntil(b"\r\n\r\n"):
                [[(_, name)]] = writer.get_extra_info("peercert")["subject"]
                shown.append(name)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.cert))
    tls.load_cert_chain(serving.cert, serving.key)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT  # From 3.13 on; the certificates made here name no key of an authority.
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)

    def gives(name: str) -> None:
        pair = {
            f"client{part}Data": (tmp_path / f"{name}.{end}").read_text()
            for part, end in (("Certificate", "pem"), ("Key", "key"))
        }
        (tmp_path / "said").write_text(json.dumps({"status": {**pair, "expirationTimestamp": "2999-01-01T00:00:00Z"}}))

    gives("one")
    cluster = {
        "server": f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}",
        "certificate-authority": "authority.pem",
    }
    found = from_kubeconfig(write(tmp_path, program(tmp_path, f"cat {tmp_path}/said"), **cluster))
    transport = Connection(found)
    try:
        for name, margin_s in (("one", 60.0), ("two", 60.0), ("two", 1e12), ("two", 60.0)):
            gives(name)
            monkeypatch.setattr(access, "EXEC_MARGIN_S", margin_s)
            found.token()
            assert (await transport.send(Request("GET", "/version", {}), 30)).status == 200
    finally:
        await transport.close()
        server.close()
    assert shown == ["one", "one", "two", "two"]


def test_a_certificate_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    """Of which program, and why."""
    said = json.dumps({"status": {"clientCertificateData": "no", "clientKeyData": "no"}})
    with pytest.raises(AccessError, match="certificates cannot be used"):
        from_kubeconfig(write(tmp_path, program(tmp_path, f"echo '{said}'")))
