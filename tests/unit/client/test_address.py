"""Where clients look for the service."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead import places
from fairlead.client import Address, Misconfigured, find_address
from fairlead.places import client_config, default_socket, default_state_dir


def test_an_option_beats_the_environment() -> None:
    """--socket wins over FAIRLEAD_URL."""
    found = find_address("/tmp/a.sock", environ={"FAIRLEAD_URL": "http://elsewhere:1"})
    assert found == Address(socket="/tmp/a.sock")


def test_two_options_are_a_contradiction() -> None:
    """They name two places."""
    with pytest.raises(Misconfigured, match="two places"):
        find_address("/tmp/a.sock", "http://x", environ={})


def test_two_variables_are_a_contradiction() -> None:
    """They name two places."""
    with pytest.raises(Misconfigured, match="FAIRLEAD_SOCKET and FAIRLEAD_URL name two places"):
        find_address(environ={"FAIRLEAD_SOCKET": "/a", "FAIRLEAD_URL": "http://x"})


def test_the_token_goes_with_a_url_only() -> None:
    """Over the socket the kernel says who asks."""
    environ = {"FAIRLEAD_TOKEN": "secret\n"}
    assert find_address(url="http://h:1", environ=environ).token == "secret"
    assert find_address("/a", environ=environ).token == ""


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:9080", "http://127.0.0.1:9080"),
        ("myhost", "http://myhost:9080"),
        ("myhost:81", "http://myhost:81"),
        ("https://a.example/fairlead/", "https://a.example:443/fairlead"),
    ],
)
def test_urls_may_leave_out_what_is_usual(url: str, shown: str) -> None:
    """Scheme and port are filled in, a prefix is kept."""
    assert str(Address.of_url(url)) == shown


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://x", "http://", "http://x:99999", "http://x:y", "http://u:p@x", "http://x/?q=1"),
        *("http://a..b", "https://.a", f"http://{'a' * 64}", "http://x/a b", "http://x/\u00fc"),
    ],
)
def test_what_is_no_address_is_refused_with_an_example(url: str) -> None:
    """The sentence shows one."""
    with pytest.raises(Misconfigured, match=r"http://127\.0\.0\.1:9080"):
        Address.of_url(url)


def test_the_usual_places() -> None:
    """The runtime directory, else /run for root, else below the home directory."""
    assert default_socket({"XDG_RUNTIME_DIR": "/run/user/7"}, uid=7) == "/run/user/7/fairlead.sock"
    assert default_socket({}, uid=0) == "/run/fairlead.sock"
    assert default_socket({"HOME": "/home/ann"}, uid=7) == "/home/ann/.local/state/fairlead/fairlead.sock"
    assert default_state_dir({"HOME": "/home/ann"}, uid=7) == "/home/ann/.local/state/fairlead"
    assert default_state_dir({}, uid=0) == "/var/lib/fairlead"
    assert default_state_dir({"XDG_STATE_HOME": "/s", "HOME": "/h"}, uid=7) == "/s/fairlead"
    assert default_state_dir({"XDG_STATE_HOME": "not/absolute", "HOME": "/h"}, uid=7) == "/h/.local/state/fairlead"
    assert client_config({"XDG_CONFIG_HOME": "/c"}) == "/c/fairlead/config.toml"


def test_the_machines_own_service_is_found_when_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody without a service of his own uses the shared one."""
    shared = tmp_path / "shared.sock"
    monkeypatch.setattr(places, "SYSTEM_SOCKET", str(shared))
    environ = {"XDG_RUNTIME_DIR": str(tmp_path)}
    assert find_address(environ=environ).socket == str(tmp_path / "fairlead.sock")
    shared.touch()
    assert find_address(environ=environ).socket == str(shared)
    (tmp_path / "fairlead.sock").touch()
    assert find_address(environ=environ).socket == str(tmp_path / "fairlead.sock")


def test_a_tilde_in_a_socket_path_is_the_home_directory() -> None:
    """As in a shell."""
    assert find_address("~/x.sock", environ={}).socket == str(Path("~/x.sock").expanduser())


def test_a_runtime_directory_that_is_not_absolute_is_ignored() -> None:
    """A client in another directory would look elsewhere."""
    environ = {"XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "/s"}
    assert default_socket(environ, uid=7) == "/s/fairlead/fairlead.sock"
