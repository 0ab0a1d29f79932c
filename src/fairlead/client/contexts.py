"""The configuration of a user's clients: services by name, and which of them is meant when nobody says.

Decides what the file may say, and changes it without touching the rest of it. Never connects. Invariant: what is wrong
with the file is said with its line, and a file that others can read holds no token.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead.client.address import Address
from fairlead.client.errors import Misconfigured

_KEYS = ("socket", "url", "token", "namespace", "ca")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Context:
    """A service by name: the socket of a machine, or the address of a machine or cluster."""

    name: str
    socket: str = ""
    url: str = ""
    token: str = ""
    namespace: str = ""
    ca: str = ""
    """The file with the certificates that are believed of an https address."""

    def address(self, token: str = "") -> Address:
        """Where it is; `token` goes before its own."""
        if self.socket:
            if self.ca:
                raise Misconfigured("a file of certificates is for https alone, not for a socket")
            path = os.path.expanduser(self.socket)  # noqa: PTH111 - `Path` fails where nobody has that home
            return Address(socket=path, namespace=self.namespace)
        return Address.of_url(self.url, token or self.token, self.namespace, self.ca)


@dataclass(frozen=True)
class Contexts:
    """What the file says."""

    file: Path
    text: str = ""
    current: str = ""
    named: Mapping[str, Context] = field(default_factory=dict)

    def chosen(self, name: str = "") -> Context | None:
        """The context of this name, else the current one; None: there is none. Raises `Misconfigured`."""
        name = name or self.current
        if not name:
            return None
        if name not in self.named:
            known = ", ".join(sorted(self.named)) or "none"
            raise Misconfigured(f"{self.file}: there is no context {name!r}; there are {known}")
        return self.named[name]

    # -- changes -----------------------------------------------------------------------------------------------------

    def use(self, name: str) -> None:
        """Make a context the current one. Raises `Misconfigured` if there is none of this name."""
        self.chosen(name)
        line = f"current = {_text(name)}\n"
        text, count = re.subn(r"(?m)^[ \t]*current[ \t]*=.*\n?", lambda _: line, self.text, count=1)
        self._write(text if count else line + self.text, name, self.named)

    def add(self, context: Context) -> None:
        """Add a context; the first one becomes the current one. Raises `Misconfigured` if the name is taken."""
        if not _NAME.fullmatch(context.name):
            raise Misconfigured(f"{context.name!r} is no name of a context; use letters, digits and . _ -")
        if context.name in self.named:
            raise Misconfigured(f"{self.file}: there is a context {context.name!r} already; remove it first")
        if bool(context.socket) == bool(context.url):
            raise Misconfigured(
                f"context {context.name!r}: say where it is, with --socket PATH or with --url URL, not both"
            )
        context.address()
        said = [(key, getattr(context, key)) for key in _KEYS if getattr(context, key)]
        lines = [f"[contexts.{_text(context.name)}]", *(f"{key} = {_text(value)}" for key, value in said)]
        text = self.text + ("\n" if self.text else "") + "\n".join(lines) + "\n"
        current = self.current or context.name
        text = text if self.current else f"current = {_text(current)}\n{text}"
        self._write(text, current, {**self.named, context.name: context})

    def remove(self, name: str) -> None:
        """Remove a context. Raises `Misconfigured` if there is none of this name."""
        self.chosen(name)
        kept, inside = list[str](), False
        for line in self.text.splitlines(keepends=True):
            if (header := re.match(r"\s*\[contexts\.(.+?)\]", line)) or line.lstrip().startswith("["):
                inside = header is not None and header[1].strip().strip("\"'") == name
            current = name == self.current and re.match(r"\s*current\s*=", line)
            if not inside and not current:
                kept.append(line)
        rest = {key: value for key, value in self.named.items() if key != name}
        self._write("".join(kept), "" if name == self.current else self.current, rest)

    def _write(self, text: str, current: str, named: Mapping[str, Context]) -> None:
        """Replace the file, if it then says what was meant."""
        then = _parsed(self.file, text)
        if (then.current, then.named) != (current, named):
            raise Misconfigured(f"{self.file}: is not written as `fairlead context` does; change it in an editor")
        file = Path(os.path.realpath(self.file))  # It may be a link to where it is kept.
        new = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.touch(mode=0o600)
            new.write_text(text, encoding="utf-8")
            new.replace(file)
        except (OSError, UnicodeEncodeError) as error:
            with suppress(OSError):
                new.unlink()
            why = getattr(error, "strerror", "") or "it would not be UTF-8 text"
            raise Misconfigured(f"{self.file}: cannot be written: {why}") from None


def _text(value: str) -> str:
    """A text as TOML has it: as JSON does, but with each character whole."""
    return json.dumps(value, ensure_ascii=False)


def read_contexts(file: Path) -> Contexts:
    """What a configuration says; nothing if it is not there. Raises `Misconfigured` with the place of what is wrong."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Contexts(file)
    except UnicodeDecodeError as error:
        raise Misconfigured(f"{file}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise Misconfigured(f"{file}: cannot be read: {error.strerror}") from None
    found = _parsed(file, text)
    if any(context.token for context in found.named.values()) and file.stat().st_mode & 0o077:
        place = _line(text, next(c.name for c in found.named.values() if c.token), "token")
        raise Misconfigured(f"{file}:{place}: others can read this file, and it has a token; run: chmod 600 {file}")
    return found


def _parsed(file: Path, text: str) -> Contexts:
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        what = re.sub(r" \(at .*\)$", "", str(error))
        where = f":{place[1]}:{place[2]}" if place else f":{len(text.splitlines())}"
        raise Misconfigured(f"{file}{where}: is not TOML: {what}") from None
    current = said.pop("current", "")
    tables = said.pop("contexts", {})
    for key in said:
        raise _wrong(file, text, "", key, "there is no such key; there are current and contexts")
    if not isinstance(current, str):
        raise _wrong(file, text, "", "current", "must be the name of a context")
    if not isinstance(tables, dict):
        raise _wrong(file, text, "", "contexts", "must be tables, such as [contexts.lab]")
    found = Contexts(file, text, current, {name: _context(file, text, name, table) for name, table in tables.items()})
    if current and current not in found.named:
        raise _wrong(file, text, "", "current", f"there is no context {current!r}")
    return found


def _context(file: Path, text: str, name: str, table: Any) -> Context:
    if not isinstance(table, dict):
        raise _wrong(file, text, "", name, f"a context is a table, such as [contexts.{name}]")
    for key, value in table.items():
        if key not in _KEYS:
            raise _wrong(file, text, name, key, f"there is no such key; there are {', '.join(_KEYS)}")
        if not isinstance(value, str) or not value:
            raise _wrong(file, text, name, key, "must be a text")
    if ("socket" in table) == ("url" in table):
        raise _wrong(file, text, name, "", f"the context {name} needs either a socket or a url")
    try:
        context = Context(name, **table)
        context.address()
    except Misconfigured as error:
        raise _wrong(file, text, name, "url", error.message) from None
    return context


def _wrong(file: Path, text: str, table: str, key: str, what: str) -> Misconfigured:
    line = _line(text, table, key)
    return Misconfigured(f"{file}:{line}: {key}{': ' if key else ''}{what}")


def _line(text: str, table: str, key: str) -> int:
    """The line of a key of a context (or of the file); of the context where there is no such key."""
    at, inside = 1, not table
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[+\s*(.+?)\s*\]", line):
            parts = [part.strip("\"'") for part in header[1].split(".", 1)]
            inside = parts == ["contexts", table] if table else key in parts
            at = number if inside else at
        if inside and key and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.\]]", line):
            return number
    return at
