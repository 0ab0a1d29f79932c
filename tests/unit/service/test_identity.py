"""Who is calling: the kernel says it on the Unix socket, a token over TCP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fairlead.local.accounts import Account
from fairlead.runtime import Refusal
from fairlead.service import identity
from fairlead.service.identity import PEER, Gate, Peer, Tokens, TokensError
from fairlead.service.sessions import Sessions

OWN = 1000


def gate(tmp_path: Path, everybody: bool, admins: tuple[str, ...] = ()) -> Gate:
    return Gate(Tokens(tmp_path / "tokens.json"), admins=admins, own_uid=OWN, everybody=everybody)


def on_socket(uid: int) -> dict[str, Any]:
    return {PEER: Peer(1, uid, uid)}


def test_a_service_for_everybody_serves_everybody(tmp_path: Path) -> None:
    """Root, its own user and the named ones are administrators, others are not; all may submit."""
    serving = gate(tmp_path, True, ("uid-77777",))
    found = {uid: serving.caller(on_socket(uid), None) for uid in (0, OWN, 77_777, 66_666)}
    assert {uid: caller.is_admin for uid, caller in found.items()} == {0: True, OWN: True, 77_777: True, 66_666: False}
    assert all(caller.may_submit for caller in found.values())
    assert found[66_666].user == "uid-66666"


def test_a_service_of_one_user_serves_nobody_else(tmp_path: Path) -> None:
    """Others are told what to do; root may look and stop, but not submit, since work would not run as root."""
    serving = gate(tmp_path, False)
    assert serving.caller(on_socket(OWN), None).may_submit
    with pytest.raises(Refusal, match=r"alone, and you are uid-66666.*fairlead up") as refused:
        serving.caller(on_socket(66_666), None)
    assert refused.value.code == "forbidden"
    root = serving.caller(on_socket(0), None)
    assert root.is_admin
    with pytest.raises(Refusal, match="runs work as"):
        root.require_submit(serving.own_name)


def test_the_kernel_beats_a_token(tmp_path: Path) -> None:
    """On the Unix socket nobody becomes somebody else."""
    serving = gate(tmp_path, True)
    tokens = Tokens(tmp_path / "tokens.json")
    text, _ = tokens.create(name="", user="root", uid=0)
    assert serving.caller(on_socket(66_666), f"Bearer {text}").uid == 66_666


def test_an_account_that_cannot_be_looked_up_now_is_not_taken_for_gone(tmp_path: Path) -> None:
    """Who shows a token is told to try again."""

    def look(_: int) -> Account:
        raise OSError(24, "Too many open files")

    tokens = Tokens(tmp_path / "tokens.json")
    text, _ = tokens.create(name="", user="root", uid=0)
    serving = Gate(tokens, admins=(), own_uid=OWN, everybody=True, account_of=look)
    with pytest.raises(Refusal, match="cannot be looked up: Too many open files; try again") as refused:
        serving.caller({"method": "GET", "path": "/api/v1/jobs"}, f"Bearer {text}")
    assert refused.value.code == "unavailable"


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Basic abc", "Bearer wrong", "bearer fl_" + "a" * 43]
)
def test_over_tcp_a_known_token_is_needed(tmp_path: Path, header: str | None) -> None:
    """Anything else is refused with what to do."""
    with pytest.raises(Refusal, match="fairlead token create") as refused:
        gate(tmp_path, True).caller({}, header)
    assert refused.value.code == "unauthorized"


def test_a_token_stands_for_its_user_until_it_is_revoked(tmp_path: Path) -> None:
    """Also after a restart; the file does not have its text."""
    path = tmp_path / "tokens.json"
    text, token = Tokens(path).create(name="laptop", user="ada", uid=OWN)
    tokens = Tokens(path)
    found = tokens.recognise(text)
    assert found is not None
    assert (found.user, found.uid, found.name) == ("ada", OWN, "laptop")
    assert tokens.used_ms(found) is not None
    assert text not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert tokens.revoke(token.id)
    assert tokens.recognise(text) is None
    assert Tokens(path).recognise(text) is None
    assert not tokens.revoke(token.id)


def test_in_whose_line_a_request_waits_is_seen_from_what_it_shows(tmp_path: Path) -> None:
    """Also after a restart; the kernel's word goes before a token, and what nobody has is nobody's."""
    text, token = Tokens(tmp_path / "tokens.json").create(name="", user="ada", uid=OWN)
    tokens = Tokens(tmp_path / "tokens.json")
    sessions = Sessions(None)
    own = Gate(tokens, own_uid=OWN, everybody=True, sessions=sessions)

    def user(shown: str, peer: Peer | None = None) -> int | None:
        headers = [(b"authorization", shown.encode("latin-1"))] if shown else []
        return own.user_of({"headers": headers} | ({PEER: peer} if peer is not None else {}))

    assert user(f"Bearer {text}") == OWN
    assert user(f"Bearer {text}", Peer(1, 66_666, 1)) == 66_666
    assert [user(shown) for shown in ("", "Bearer", "Bearer \xff", "Bearer fl_x", "Bearer fls_x")] == [None] * 5
    ticket, _ = sessions.ticket("ann", 50_001)
    assert user(f"Bearer {ticket}") == 50_001
    assert sessions.recognise(ticket) is not None, "looking used it up"
    assert user(f"Bearer {sessions.session('ann', 50_001)[0]}") == 50_001
    assert tokens.revoke(token.id)
    assert user(f"Bearer {text}") is None
    over, _ = tokens.create(name="", user="ada", uid=OWN, lifetime_ms=0)
    assert user(f"Bearer {over}") is None, "others could take up what ada may have"


def test_ids_of_tokens_are_not_used_again(tmp_path: Path) -> None:
    """A revoked id never means another token."""
    tokens = Tokens(tmp_path / "tokens.json")
    _, first = tokens.create(name="", user="ada", uid=OWN)
    tokens.revoke(first.id)
    _, second = Tokens(tmp_path / "tokens.json").create(name="", user="ada", uid=OWN)
    assert second.id != first.id


def test_tokens_whose_time_is_long_over_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or there would be too many some day where each night one is made for a day. For a month they are shown."""
    day_ms = 86_400_000
    tokens = Tokens(tmp_path / "tokens.json")
    made = [tokens.create(name="", user="ada", uid=OWN, lifetime_ms=ms)[1].id for ms in (None, 1, 2 * day_ms)]
    assert made == [token.id for token in tokens.all()]
    now_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns + 31 * day_ms * 1_000_000)
    monkeypatch.setattr(identity, "MOST_TOKENS", 3)
    _, last = tokens.create(name="", user="ada", uid=OWN)
    assert [token.id for token in Tokens(tmp_path / "tokens.json").all()] == [made[0], made[2], last.id]


def test_a_damaged_file_of_tokens_is_refused(tmp_path: Path) -> None:
    """Not taken for an empty one."""
    path = tmp_path / "tokens.json"
    path.write_text('{"tokens": 5}')
    with pytest.raises(TokensError, match="move it away"):
        Tokens(path)


# --- over the wire ------------------------------------------------------------------------------------------------


def test_the_peer_of_a_connection_is_this_process_user(served: Any) -> None:
    """Nothing in the request says so."""
    info = served.call("GET", "/api/v1/info").json
    assert info["is_admin"] is True
    assert info["user"] == __import__("pwd").getpwuid(os.geteuid()).pw_name


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.real
def test_another_user_of_the_machine_is_himself(served: Any) -> None:
    """He is known without a password, his work runs as him, and others' work is hidden from him."""
    mine = served.submit("/bin/sleep", "20", queue="root.small", resources={"cpu": 5})
    script = """
import encodings.idna, http.client, json, os, socket, sys, time
os.setgroups([]); os.setgid(65534); os.setuid(65534)
def call(method, path, body=None):
    c = http.client.HTTPConnection("x"); c.sock = socket.socket(socket.AF_UNIX); c.sock.connect(sys.argv[1])
    c.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
    r = c.getresponse(); return r.status, json.loads(r.read())
who = call("GET", "/api/v1/info")[1]
key = call("POST", "/api/v1/jobs", {"jobs": [{"command": ["/usr/bin/id", "-u"], "cwd": "/"}]})[1]["jobs"][0]["key"]
while call("GET", f"/api/v1/jobs/{key}")[1]["ended_at_ms"] is None: time.sleep(0.02)
theirs = call("GET", f"/api/v1/jobs/{sys.argv[2]}")[0]
print(json.dumps([who["user"], who["is_admin"], key, theirs, len(call("GET", "/api/v1/jobs")[1]["jobs"])]))
"""
    served.listening.socket.parent.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(served.listening.socket), mine],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    user, is_admin, key, theirs, seen = json.loads(done.stdout)
    assert (user, is_admin, theirs, seen) == ("nobody", False, 404, 1)
    assert served.call("GET", f"/api/v1/jobs/{key}/logs").body == b"65534\n"
    served.call("POST", f"/api/v1/jobs/{mine}/cancel", {})


def test_over_tcp_nobody_gets_in_without_a_token(served: Any) -> None:
    """Every route but the health check wants one, and says so."""
    paths = ["/api/v1/jobs", "/api/v1/info", "/api/v1/queues", "/api/v1/events", "/metrics", "/ws/v1/partitions"]
    for path in paths:
        answer = served.call("GET", path, who="stranger")
        assert answer.status == 401, path
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert served.call("GET", "/healthz", who="stranger").json == {"status": "ok", "problems": []}


def test_tokens_are_made_listed_and_revoked(served: Any) -> None:
    """Each user sees and revokes his own; only administrators make them for others."""
    made = served.call("POST", "/api/v1/tokens", {"name": "ci"}, "alice")
    assert made.status == 201
    served.tokens["alice-ci"] = made.json["token"]
    assert served.call("GET", "/api/v1/info", who="alice-ci").json["user"] == "alice"
    listed = served.call("GET", "/api/v1/tokens", who="alice").json["tokens"]
    assert {token["name"] for token in listed} == {"test", "ci"}
    assert all("token" not in token and "sha256" not in token for token in listed)
    identifier = made.json["id"]
    assert served.call("DELETE", f"/api/v1/tokens/{identifier}", who="bob").status == 404
    assert served.call("POST", "/api/v1/tokens", {"user": "root"}, "alice").status == 403
    assert served.call("DELETE", f"/api/v1/tokens/{identifier}", who="alice").json == {"ok": True}
    assert served.call("GET", "/api/v1/info", who="alice-ci").status == 401


def test_reads_about_nobody_can_be_opened(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then /ws/v1 and /metrics need no token; everything about single users still does."""
    monkeypatch.setattr(served.place, "open_reads", True)
    assert served.call("GET", "/metrics", who="stranger").status == 200
    assert served.call("GET", "/ws/v1/partitions", who="stranger").status == 200
    assert served.call("GET", "/api/v1/jobs", who="stranger").status == 401
