"""Tickets are good once, sessions until they end; both are the user and nobody else."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import Request, urlopen

import pytest

from fairlead.local import accounts
from fairlead.runtime import Refusal
from fairlead.service import sessions as module
from fairlead.service.identity import CONNECTION, PEER, Gate, Peer, Tokens, peer_of
from fairlead.service.serve import ServeOptions
from fairlead.service.sessions import SESSION_S, TICKET_S, TOKEN, Sessions
from fairlead.wire.pages import GUEST


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "sessions.json")


@pytest.fixture
def gate(tmp_path: Path, sessions: Sessions) -> Gate:
    return Gate(
        Tokens(tmp_path / "tokens.json"),
        own_uid=os.geteuid(),
        everybody=True,
        sessions=sessions,
        account_of=lambda uid: accounts.Account("ann" if uid == 50_001 else f"u{uid}", uid, 1),
    )


def test_a_ticket_is_good_once(gate: Gate, sessions: Sessions) -> None:
    text, _ = sessions.ticket("ann", 50_001)
    assert gate.caller({}, f"Bearer {text}").uid == 50_001
    with pytest.raises(Refusal, match="the ticket was used"):
        gate.caller({}, f"Bearer {text}")


def test_who_makes_many_ends_those_of_nobody_else() -> None:
    """A guest for one, whom nobody knows: of whoever has the most the oldest one ends."""
    sessions = Sessions(None)
    mine, ticket = sessions.session("ann", 50_001)[0], sessions.ticket("ann", 50_001)[0]
    theirs = [sessions.session("", -1)[0] for _ in range(1010)]
    for _ in range(1010):
        sessions.ticket("", -1)
    assert sessions.recognise(mine) is not None
    assert sessions.recognise(ticket) is not None
    assert [sessions.recognise(each) is not None for each in theirs] == [False] * 11 + [True] * 999


def test_a_session_ends_with_the_token_it_began_with(gate: Gate, sessions: Sessions, tmp_path: Path) -> None:
    """It went on for half a day after its token was revoked."""
    tokens = gate._tokens
    shown, token = tokens.create(name="", user="ann", uid=50_001)
    scope: dict[str, Any] = {"method": "POST", "path": "/api/v1/sessions"}
    assert gate.caller(scope, f"Bearer {shown}").uid == 50_001
    text, _ = sessions.session("ann", 50_001, scope[TOKEN])
    headers = {"headers": [(b"authorization", f"Bearer {text}".encode())]}
    later: dict[str, Any] = {CONNECTION: SimpleNamespace(token=None)}
    assert gate.caller(later, f"Bearer {text}").uid == 50_001
    assert gate.user_of(headers) == 50_001
    assert later[TOKEN] == token.id, "another session that it begins has that token, too"
    assert later[CONNECTION].token == token, "a stream of it ends with the token"
    kept = Sessions(tmp_path / "sessions.json").look(text)
    assert kept is not None
    assert kept.token == token.id, "also after a restart"
    assert tokens.revoke(token.id)
    with pytest.raises(Refusal, match="this session is over: this token is not known; it may have been revoked"):
        gate.caller({}, f"Bearer {text}")
    assert gate.user_of(headers) is None


def test_a_session_begun_without_a_token_is_of_none(gate: Gate, sessions: Sessions) -> None:
    text, _ = sessions.session("ann", 50_001)
    scope: dict[str, Any] = {}
    assert gate.caller(scope, f"Bearer {text}").uid == 50_001
    assert TOKEN not in scope


def test_a_ticket_is_good_for_a_minute(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    text, made = sessions.ticket("ann", 50_001)
    monkeypatch.setattr(module, "_now_ms", lambda: made.expires_at_ms + 1)
    assert sessions.recognise(text) is None
    assert TICKET_S == 60


def test_a_session_ends_by_itself_and_when_it_is_ended(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    one, made = sessions.session("ann", 50_001)
    two, _ = sessions.session("ann", 50_001)
    sessions.end(one)
    assert sessions.recognise(one) is None
    assert sessions.recognise(two) is not None
    monkeypatch.setattr(module, "_now_ms", lambda: made.expires_at_ms + SESSION_S * 1000)
    assert sessions.recognise(two) is None


def test_sessions_outlive_the_service_and_the_file_does_not_give_them_away(tmp_path: Path, sessions: Sessions) -> None:
    text, _ = sessions.session("ann", 50_001)
    again = Sessions(tmp_path / "sessions.json").recognise(text)
    assert again is not None
    assert again.user == "ann"
    assert text not in (tmp_path / "sessions.json").read_text()
    assert (tmp_path / "sessions.json").stat().st_mode & 0o077 == 0


def test_the_kernel_beats_a_session_and_on_the_socket_of_the_pages_nobody_is_anybody(
    gate: Gate, sessions: Sessions, tmp_path: Path
) -> None:
    """The process of the pages has no rights of its own: whoever types nonsense into them is not whoever runs them."""
    text, _ = sessions.session("ann", 50_001)
    assert gate.caller({PEER: Peer(1, os.geteuid(), 0)}, f"Bearer {text}").uid == os.geteuid()
    assert peers(tmp_path / "s") == os.geteuid()
    assert peers(tmp_path / "s.pages") is None
    assert gate.caller({}, f"Bearer {text}").uid == 50_001
    for shown in (None, "", "Bearer nonsense"):
        with pytest.raises(Refusal):
            gate.caller({}, shown)


def peers(path: Path) -> int | None:
    """Whom the kernel names on a connection to the socket of this path."""
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as client:
        listening.bind(str(path))
        listening.listen()
        client.connect(str(path))
        accepted, _ = listening.accept()
        with accepted:
            found = peer_of(SimpleNamespace(get_extra_info=lambda _: accepted))
            return found.uid if found is not None else None


def test_a_session_over_the_whole_service(served: Any) -> None:
    ticket = served.call("POST", "/api/v1/tickets", {}, "alice").json
    assert ticket["url"] == ""
    assert "turned off" in ticket["why_none"]
    served.tokens["ticket"] = ticket["ticket"]
    begun = served.call("POST", "/api/v1/sessions", {}, "ticket")
    assert begun.status == 201
    assert served.call("POST", "/api/v1/sessions", {}, "ticket").status == 401
    served.tokens["session"] = begun.json["session"]
    assert served.call("GET", "/api/v1/info", who="session").json["user"] == begun.json["user"] == "alice"
    assert served.call("DELETE", "/api/v1/sessions", who="alice").status == 404
    assert served.call("DELETE", "/api/v1/sessions", who="session").json == {"ok": True}
    assert served.call("GET", "/api/v1/info", who="session").status == 401


def test_the_front_says_how_to_get_the_pages(served: Any) -> None:
    front = served.call("GET", "/", who="alice")
    assert front.status == 404
    assert b"turned off" in front.body


def test_a_guest_may_look_where_strangers_may_and_change_nothing(tmp_path: Path, sessions: Sessions) -> None:
    """Whoever shows the word, or a session that was begun with it."""
    own, tokens = os.geteuid(), Tokens(tmp_path / "tokens.json")
    shut = Gate(tokens, own_uid=own, everybody=True, sessions=sessions)
    opened = Gate(tokens, own_uid=own, everybody=True, guests=True, sessions=sessions)
    session, _ = sessions.session("", -1)
    look, begin, act = (
        {"method": method, "path": path}
        for method, path in (("GET", "/api/v1/line"), ("POST", "/api/v1/sessions"), ("POST", "/api/v1/tokens"))
    )
    for shown in (GUEST, session):
        for scope in (look, begin):
            caller = opened.caller(scope, f"Bearer {shown}")
            assert (caller.user, caller.is_admin, caller.may_submit) == ("", False, False)
        with pytest.raises(Refusal, match="may look and change nothing"):
            opened.caller(act, f"Bearer {shown}")
        for path in ("/api/v1/config", "/api/v1/config/history", "/api/v1/config/status"):
            with pytest.raises(Refusal, match="the queue file"):
                opened.caller({"method": "GET", "path": path}, f"Bearer {shown}")
        with pytest.raises(Refusal, match="strangers see nothing"):
            shut.caller(look, f"Bearer {shown}")


def test_a_guest_is_told_nowhere_who_changed_the_queue_file_and_where_it_lies(run: Any, tmp_path: Path) -> None:
    """It stood in what is said of the service, and in the events, while /config refused it."""
    file = tmp_path / "queues.yaml"
    file.write_text("partitions: [{name: default, queues: [{name: root}]}]")
    options = ServeOptions(config=file, state_dir=tmp_path / "state", socket=tmp_path / "s", port=0, open_reads=True)
    with ExitStack() as stack:
        place, listening = run(options, stack, lambda _: None)
        mine, _ = place.tokens.create(name="", user=accounts.by_uid(os.geteuid()).name, uid=os.geteuid())

        def told(path: str, token: str) -> str:
            asked = Request(f"{listening.url}/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})
            with urlopen(asked, timeout=10) as answer:
                lines = takewhile(lambda line: line not in (b"", b"event: caught-up\n"), iter(answer.readline, None))
                return b"".join(lines).decode()

        for path in ("info", "events?from=0"):
            assert str(file) in told(path, mine)
            assert str(file) not in told(path, GUEST)
