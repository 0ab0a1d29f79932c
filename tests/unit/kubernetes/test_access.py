"""Credentials: kubeconfigs, tokens in files, credential programs, and what is said when they cannot be used."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.kubernetes import connection
from fairlead.kubernetes.connection import AccessError, TokenFile, find_access, from_kubeconfig


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


def test_plain_http_has_no_tls(tmp_path: Path) -> None:
    """A proxy on this machine."""
    assert from_kubeconfig(write(tmp_path, {}, server="http://127.0.0.1:8001")).tls is None


def test_a_token_file_is_read_again_when_it_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new token counts a minute later; a file that is gone leaves the last one."""
    clock = [1000.0]
    monkeypatch.setattr(connection.time, "monotonic", lambda: clock[0])
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
        from_kubeconfig(path, "two")
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
