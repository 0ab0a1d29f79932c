"""The configuration of a user's clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlead.client import Address, Misconfigured, find_address
from fairlead.client.contexts import Context, Contexts, read_contexts

FILE = """
# my services
current = "lab"

[contexts.lab]
socket = "/run/lab.sock"

[contexts.shop]
url = "https://shop.example"
namespace = "shop"
token = "s3cret"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration that nobody else can read."""
    path = tmp_path / "fairlead" / "config.toml"
    path.parent.mkdir()
    path.touch(mode=0o600)
    path.write_text(FILE)
    return path


def found(tmp_path: Path, **said: str) -> Address:
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    options = {name: said.pop(name, None) for name in ("socket", "url", "context")}
    return find_address(**options, environ=environ | said)


def test_options_go_before_the_environment_and_that_before_the_configuration(file: Path, tmp_path: Path) -> None:
    """And the usual places are last."""
    assert found(tmp_path).socket == "/run/lab.sock"
    assert found(tmp_path, FAIRLEAD_CONTEXT="shop").host == "shop.example"
    assert found(tmp_path, FAIRLEAD_SOCKET="/a").socket == "/a"
    assert found(tmp_path, FAIRLEAD_SOCKET="/a", context="shop").namespace == "shop"
    assert found(tmp_path, socket="/b").socket == "/b"
    file.unlink()
    assert found(tmp_path).socket == str(tmp_path / "fairlead.sock")


def test_the_token_of_the_environment_goes_before_that_of_the_context(file: Path, tmp_path: Path) -> None:
    """So that it can be tried."""
    del file
    assert found(tmp_path, context="shop").token == "s3cret"
    assert found(tmp_path, context="shop", FAIRLEAD_TOKEN="other").token == "other"


def test_two_places_are_a_contradiction(file: Path, tmp_path: Path) -> None:
    """Also when one is a context."""
    del file
    with pytest.raises(Misconfigured, match="--socket and --context name two places"):
        found(tmp_path, socket="/a", context="lab")
    with pytest.raises(Misconfigured, match="FAIRLEAD_URL and FAIRLEAD_CONTEXT name two places"):
        found(tmp_path, FAIRLEAD_URL="h", FAIRLEAD_CONTEXT="lab")


def test_a_context_that_is_not_there_is_named_with_those_that_are(file: Path) -> None:
    """In the file that was looked at."""
    with pytest.raises(Misconfigured, match=r"config\.toml: there is no context 'x'; there are lab, shop"):
        read_contexts(file).chosen("x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("current = ", ":1: is not TOML"),
        ("current = @", ":1:11: is not TOML"),
        ("x = 1", ":1: x: there is no such key; there are current and contexts"),
        ("\ncurrent = 'a'", ":2: current: there is no context 'a'"),
        ("current = 1", ":1: current: must be the name of a context"),
        ("contexts = 3", ":1: contexts: must be tables"),
        ("[contexts.a]\nsocket = '/s'\n\n[contexts.b]\nsock = '/s'", ":5: sock: there is no such key"),
        ("[contexts.a]\nsocket = 7", ":2: socket: must be a text"),
        ("[contexts.a]\nsocket = '/s'\n[contexts.b]\n", ":3: the context b needs either a socket or a url"),
        ("[contexts.a]\nurl = 'ftp://x'", ":2: url: 'ftp://x' is not an address"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(file: Path, text: str, said: str) -> None:
    """File, line and key."""
    file.write_text(text)
    with pytest.raises(Misconfigured) as caught:
        read_contexts(file)
    assert caught.value.message.startswith(f"{file}{said}")


def test_a_token_that_others_can_read_is_refused(file: Path) -> None:
    """With the command that mends it."""
    file.chmod(0o644)
    with pytest.raises(Misconfigured, match=r"config\.toml:11: others can read this file.*chmod 600"):
        read_contexts(file)


def test_changes_leave_the_rest_as_it_was_written(file: Path) -> None:
    """Comments and order included; a new file is for its owner alone."""
    read_contexts(file).use("shop")
    assert file.read_text() == FILE.replace('"lab"\n\n', '"shop"\n\n')
    read_contexts(file).add(Context("new.one", url="h:1"))
    assert read_contexts(file).named["new.one"].address() == Address.of_url("h:1")
    read_contexts(file).remove("new.one")
    assert file.read_text().rstrip("\n") == FILE.replace('"lab"\n\n', '"shop"\n\n').rstrip("\n")
    read_contexts(file).remove("shop")
    assert read_contexts(file).current == ""
    assert "# my services" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_first_one_is_used(tmp_path: Path) -> None:
    """The file is made, with its directory."""
    path = tmp_path / "a" / "config.toml"
    read_contexts(path).add(Context("lab", socket="/s"))
    read_contexts(path).add(Context("two", socket="/t"))
    assert (read_contexts(path).current, set(read_contexts(path).named)) == ("lab", {"lab", "two"})


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (Context("lab", socket="/s"), "already"),
        (Context("a b", socket="/s"), "no name of a context"),
        (Context("x"), "with --socket PATH or with --url URL"),
        (Context("x", url="ftp://h"), "not an address"),
    ],
)
def test_what_makes_no_sense_is_not_added(file: Path, context: Context, said: str) -> None:
    """And nothing is changed."""
    with pytest.raises(Misconfigured, match=said):
        read_contexts(file).add(context)
    assert file.read_text() == FILE


def test_a_file_written_in_another_way_is_left_to_its_writer(file: Path) -> None:
    """Rather than damaged."""
    file.write_text("contexts = {lab = {socket = '/s'}}\n")
    with pytest.raises(Misconfigured, match="change it in an editor"):
        read_contexts(file).remove("lab")


@pytest.mark.parametrize("name", ["büro", r"a\1b", "a b"])
def test_a_context_of_any_name_can_be_used(file: Path, name: str) -> None:
    """Names that stand in the file are not only those that `add` would take."""
    file.write_text(f'current = "lab"\n[contexts.lab]\nsocket = "/l"\n[contexts.{json.dumps(name)}]\nsocket = "/x"\n')
    read_contexts(file).use(name)
    assert read_contexts(file).current == name


def test_a_path_of_any_characters_can_be_named(file: Path) -> None:
    """Beyond those of one word too, as JSON alone would cut it into two."""
    read_contexts(file).add(Context("ship", socket="/tmp/🚢/é"))
    assert read_contexts(file).named["ship"].socket == "/tmp/🚢/é"


def test_a_home_that_nobody_has_stays_as_it_is_written(file: Path) -> None:
    """As in FAIRLEAD_SOCKET: there is no such file, and that is said when it is used."""
    read_contexts(file).add(Context("far", socket="~nobody-of-this-name/s"))
    assert read_contexts(file).named["far"].address().socket == "~nobody-of-this-name/s"


def test_a_file_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    """And nothing is left beside it."""
    (tmp_path / "config").write_text("no directory")
    with pytest.raises(Misconfigured, match="cannot be written: File exists"):
        Contexts(tmp_path / "config" / "config.toml").add(Context("lab", socket="/l"))
    (tmp_path / "there" / "config.toml").mkdir(parents=True)
    with pytest.raises(Misconfigured, match="cannot be written: Is a directory"):
        Contexts(tmp_path / "there" / "config.toml").add(Context("lab", socket="/l"))
    assert [each.name for each in (tmp_path / "there").iterdir()] == ["config.toml"]


def test_a_file_that_is_kept_elsewhere_stays_there(file: Path, tmp_path: Path) -> None:
    """Some keep what they configure in one directory, and links to it."""
    kept = file.rename(tmp_path / "kept.toml")
    file.symlink_to(kept)
    read_contexts(file).use("shop")
    assert file.is_symlink()
    assert read_contexts(kept).current == "shop"
