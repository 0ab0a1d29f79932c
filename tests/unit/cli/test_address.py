"""Where clients look for the service."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli import address
from fairlead.cli.address import Address, address_of_url, default_socket, default_state_dir, find_address
from fairlead.cli.failures import Failure


def test_an_option_beats_the_environment() -> None:
    """--socket wins over FAIRLEAD_URL."""
    found = find_address("/tmp/a.sock", None, {"FAIRLEAD_URL": "http://elsewhere:1"})
    assert found == Address(socket="/tmp/a.sock")


def test_two_options_are_a_contradiction() -> None:
    """They name two places."""
    with pytest.raises(Failure, match="two places"):
        find_address("/tmp/a.sock", "http://x", {})


def test_two_variables_are_a_contradiction() -> None:
    """They name two places."""
    with pytest.raises(Failure, match="unset one"):
        find_address(None, None, {"FAIRLEAD_SOCKET": "/a", "FAIRLEAD_URL": "http://x"})


def test_the_token_goes_with_a_url_only() -> None:
    """Over the socket the kernel says who asks."""
    environ = {"FAIRLEAD_TOKEN": "secret\n"}
    assert find_address(None, "http://h:1", environ).token == "secret"
    assert find_address("/a", None, environ).token == ""


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
    assert str(address_of_url(url)) == shown


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://x:99999", "http://x:y", "http://u:p@x", "http://x/?q=1"])
def test_what_is_no_address_is_refused_with_an_example(url: str) -> None:
    """The sentence shows one."""
    with pytest.raises(Failure, match=r"http://127\.0\.0\.1:9080"):
        address_of_url(url)


def test_the_usual_places() -> None:
    """The runtime directory, else /run for root, else below the home directory."""
    assert default_socket({"XDG_RUNTIME_DIR": "/run/user/7"}, uid=7) == Path("/run/user/7/fairlead.sock")
    assert default_socket({}, uid=0) == Path("/run/fairlead.sock")
    assert default_socket({"HOME": "/home/ann"}, uid=7) == Path("/home/ann/.local/state/fairlead/fairlead.sock")
    assert default_state_dir({"HOME": "/home/ann"}, uid=7) == Path("/home/ann/.local/state/fairlead")
    assert default_state_dir({}, uid=0) == Path("/var/lib/fairlead")


def test_the_machines_own_service_is_found_when_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody without a service of his own uses the shared one."""
    shared = tmp_path / "shared.sock"
    monkeypatch.setattr(address, "SYSTEM_SOCKET", shared)
    environ = {"XDG_RUNTIME_DIR": str(tmp_path)}
    assert find_address(None, None, environ).socket == str(tmp_path / "fairlead.sock")
    shared.touch()
    assert find_address(None, None, environ).socket == str(shared)
    (tmp_path / "fairlead.sock").touch()
    assert find_address(None, None, environ).socket == str(tmp_path / "fairlead.sock")


def test_a_tilde_in_a_socket_path_is_the_home_directory() -> None:
    """As in a shell."""
    assert find_address("~/x.sock", None, {}).socket == str(Path("~/x.sock").expanduser())
