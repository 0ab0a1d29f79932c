"""Addresses of messages: of which kind each is, and which are refused."""

from __future__ import annotations

import pytest

from fairlead.wire.notices import address, kind_of


@pytest.mark.parametrize(
    ("to", "kept"),
    [("HTTPS://Example.org/Hook", "https://Example.org/Hook"), ("Mail:ann@example.org", "mail:ann@example.org")],
)
def test_its_kind_does_not_depend_on_large_letters(to: str, kept: str) -> None:
    """Else it would be a command that fails when the message is due."""
    assert address(to) == kept
    assert kind_of(kept) != "command"


@pytest.mark.parametrize("to", ["https://example.org:99999/", "https://example.org:x/", "http://[::1", "http://h:0/"])
def test_where_nothing_could_be_sent_to_is_refused_with_an_example(to: str) -> None:
    """Also where the port is what is wrong."""
    with pytest.raises(ValueError, match=r"is no URL; write https://example\.org/hook"):
        address(to)


@pytest.mark.parametrize("to", ["HTTPS-Report --to:Ann", "http -v POST :8080", "echo http://example.org"])
def test_a_command_stays_as_it_is(to: str) -> None:
    """Even one whose name begins like a URL."""
    assert (address(to), kind_of(to)) == (to, "command")


@pytest.mark.parametrize("to", ["ann@example.org", "mail", "email:ann", "END", "ftp://example.org/x", "https:hook"])
def test_what_is_no_address_and_no_command_is_refused_with_an_example(to: str) -> None:
    """It was taken for a command, which failed when the message was due."""
    with pytest.raises(ValueError, match=r"is no command; write mail:ann@example\.org"):
        address(to)


@pytest.mark.parametrize("to", ["mail -s done ann@host", "ssh ann@host true", "/opt/a@b/run", "notify-send done"])
def test_a_command_with_such_words_stays(to: str) -> None:
    assert kind_of(address(to)) == "command"
