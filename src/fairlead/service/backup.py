"""Backups of a service's state: one file, made while the service runs, and the state directory made of it again.

Decides what belongs to a state: the journal, tokens, what the machine has, how forecasts did; and, if that is wanted,
what jobs wrote. Never changes the state that it copies, and never writes over another one. Invariant: a backup that was
reported as made has been read back and holds; of a directory that was reported as restored each file was checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from fairlead.journal.format import FORMAT, JournalError
from fairlead.journal.reader import Reader
from fairlead.journal.verify import verify
from fairlead.local.runs import KEY, claim_of, is_forgotten
from fairlead.local.supervisor import run_files
from fairlead.local.supervisor.run_files import STDERR, STDOUT
from fairlead.version import version

JOURNAL = "journal.db"
BESIDE = ("tokens.json", "resources.json", "forecasts.json")
MANIFEST = "manifest.json"
RETRIES = 4
"""So often it begins anew where what it copies was removed meanwhile."""
_RUNS = "runs"
_PIECE = 2**20


class BackupError(Exception):
    """It cannot be done; the text says why and what to do."""


class Entry(msgspec.Struct, frozen=True):
    """A file of a backup."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds."""

    made_by: str
    """The version of Fairlead."""
    made_at_ms: int
    journal_format: int
    last_seq: int
    """The last record of the journal in it."""
    files: dict[str, Entry]
    runs: list[str] = []
    """Runs that were under way, or whose end may not be in the journal yet."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A file as it goes into a backup."""

    name: str
    path: Path
    of: os.stat_result


_ASIDE = ".fairlead-backup-"
"""How the directory begins in which it is made."""


def back_up(state: Path, target: Path, *, with_output: bool = False) -> Manifest:
    """Copy a state into one file, for its owner's eyes only. The service may run meanwhile. Raises `BackupError`."""
    taken = BackupError(f"{target} is there already; name another file, or move that one away")
    if not (state / JOURNAL).exists():
        raise BackupError(f"there is no journal in {state}; say with --state where the service keeps its state")
    try:
        if target.exists():
            raise taken
        with tempfile.TemporaryDirectory(prefix=_ASIDE, dir=target.parent) as aside:
            copy, fresh = Path(aside) / JOURNAL, Path(aside) / "backup"
            runs = _under_way(state)
            last_seq = _copy_journal(state / JOURNAL, copy)
            runs |= _under_way(state)
            manifest = _written(state, copy, fresh, last_seq, runs, with_output=with_output)
            _read_back(fresh)
            # A name that came into being meanwhile is not taken. Not by a link: many a shared or foreign disk has none.
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            fresh.replace(target)
    except FileExistsError as error:
        raise taken from error
    except OSError as error:
        where = target if _ASIDE in str(error.filename) else error.filename
        raise BackupError(f"the backup could not be written: {error.strerror or error} ({where})") from error
    return manifest


def _written(state: Path, journal: Path, fresh: Path, last_seq: int, runs: set[str], *, with_output: bool) -> Manifest:
    """What a backup of this copy of the journal, and of all beside it, holds; it is in the file `fresh`."""
    for _ in range(RETRIES):
        try:
            return _written_once(state, journal, fresh, last_seq, runs, with_output=with_output)
        except FileNotFoundError as gone:
            # A job has left the list meanwhile, and its output went with it.
            if not Path(str(gone.filename)).is_relative_to(state / _RUNS):
                raise
            fresh.unlink(missing_ok=True)
    return _written_once(state, journal, fresh, last_seq, runs, with_output=with_output)


def _written_once(
    state: Path, journal: Path, fresh: Path, last_seq: int, runs: set[str], *, with_output: bool
) -> Manifest:
    aside = fresh.parent
    sources = [_Source(JOURNAL, journal, journal.stat()), *_beside(state, aside, with_output)]
    manifest = Manifest(
        made_by=version(),
        made_at_ms=time.time_ns() // 1_000_000,
        journal_format=FORMAT,
        last_seq=last_seq,
        files={each.name: _digest(each.path) for each in sources},
        runs=sorted(runs),
    )
    _write(fresh, aside, manifest, sources)
    return manifest


def restore(backup: Path, state: Path) -> Manifest:
    """Make a state directory of a backup. Raises `BackupError`, also where there is a state already."""
    if state.exists() and (not state.is_dir() or any(state.iterdir())):
        raise BackupError(f"{state} is there and not empty; name a directory that is not, or move that one away")
    aside = state.with_name(f".{state.name}.restoring-{os.getpid()}")
    root = os.geteuid() == 0
    try:
        state.parent.mkdir(parents=True, exist_ok=True)
        aside.mkdir(mode=0o711 if root else 0o700)
        manifest = _unpack(backup, aside, root)
        _require_journal(aside / JOURNAL, manifest)
        _give_up_runs(aside, manifest)
        if state.exists():
            state.rmdir()
        aside.rename(state)
    except (EOFError, zlib.error, tarfile.TarError) as error:
        raise BackupError(f"{backup} is damaged: {error}") from error
    except OSError as error:
        raise BackupError(f"{state} could not be made: {error.strerror or error} ({error.filename})") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return manifest


# -- making -------------------------------------------------------------------------------------------------------


def _copy_journal(path: Path, copy: Path) -> int:
    """A copy as of one moment, whatever is written meanwhile; its last record."""
    try:
        with Reader(path) as source:
            os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            target = sqlite3.connect(copy)
            try:
                source.connection.backup(target)
            finally:
                target.close()
    except (JournalError, sqlite3.Error) as error:
        raise BackupError(f"the journal could not be copied: {error}") from error
    found = verify(copy)
    if not found.ok or found.sizes is None:
        what = found.problems[0].what if found.problems else "it is empty"
        raise BackupError(f"the journal is damaged ({what}); `fairlead journal verify {path}` says more")
    return found.sizes.last_seq


def _under_way(state: Path) -> set[str]:
    """The runs that began and whose end nobody has entered for good."""
    directories = [path for path in (state / _RUNS).glob("*") if KEY.fullmatch(path.name)]
    return {path.name for path in directories if claim_of(path) is not None and not is_forgotten(path)}


def _beside(state: Path, aside: Path, with_output: bool) -> Iterator[_Source]:
    """What belongs to it beside the journal. A log only grows, so that as much of it as was looked at is read; of all
    else, which is written anew meanwhile, a copy is taken first.
    """
    found = [state / name for name in BESIDE]
    if with_output:
        for name in (STDOUT, STDERR):
            found += sorted((state / _RUNS).glob(f"*/{name}*"))
    for number, path in enumerate(found):
        with contextlib.suppress(FileNotFoundError):  # The end of a run has taken it into the log, or it was removed.
            if path.is_file() and not path.is_symlink():
                of, grows = path.stat(), path.name in (STDOUT, STDERR)
                copied = path if grows else Path(shutil.copyfile(path, aside / f"{number}"))
                yield _Source(str(path.relative_to(state)), copied, of)


def _digest(path: Path) -> Entry:
    with path.open("rb") as file:
        return _digest_of(file)


def _digest_of(file: BinaryIO) -> Entry:
    digest, size = hashlib.sha256(), 0
    while piece := file.read(_PIECE):
        digest.update(piece)
        size += len(piece)
    return Entry(size, digest.hexdigest())


def _write(fresh: Path, aside: Path, manifest: Manifest, sources: list[_Source]) -> None:
    said = aside / MANIFEST
    said.write_bytes(msgspec.json.encode(manifest))
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out:
        with tarfile.open(fileobj=out, mode="w:gz", compresslevel=3) as tar:
            for each in (_Source(MANIFEST, said, said.stat()), *sources):
                member = tarfile.TarInfo(each.name)
                member.size, member.mtime, member.mode = manifest_size(manifest, each), each.of.st_mtime, 0o600
                member.uid, member.gid = each.of.st_uid, each.of.st_gid
                with each.path.open("rb") as file:
                    tar.addfile(member, file)
        out.flush()
        os.fsync(out.fileno())


def manifest_size(manifest: Manifest, source: _Source) -> int:
    """As much of a file as was looked at: output may have grown since."""
    known = manifest.files.get(source.name)
    return source.of.st_size if known is None else known.bytes


# -- reading ------------------------------------------------------------------------------------------------------


def _members(backup: Path) -> Iterator[tuple[Manifest, tarfile.TarInfo, BinaryIO]]:
    """Each file of a backup; the manifest, which comes first, is known from then on. Raises `BackupError`."""
    manifest: Manifest | None = None
    seen: set[str] = set()
    try:
        with tarfile.open(backup, "r:gz") as tar:
            for member in tar:
                file = cast(BinaryIO, tar.extractfile(member)) if member.isreg() else None
                if file is None:
                    raise BackupError(f"{backup} is no backup of ours: {member.name!r} in it is no file")
                if manifest is None:
                    manifest = _manifest(backup, member, file)
                    continue
                if member.name not in manifest.files or member.name in seen or not _is_ours(member.name):
                    raise BackupError(f"{backup} is no backup of ours: it holds {member.name!r}")
                seen.add(member.name)
                yield manifest, member, file
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.strerror:
            raise BackupError(f"{backup} cannot be read: {error.strerror}") from error
        raise BackupError(f"{backup} is damaged: {error}") from error
    if manifest is None or seen != set(manifest.files):
        raise BackupError(f"{backup} is damaged: not all of it is there")


def _manifest(backup: Path, member: tarfile.TarInfo, file: BinaryIO) -> Manifest:
    try:
        found = msgspec.json.decode(file.read(_PIECE * 64), type=Manifest) if member.name == MANIFEST else None
    except msgspec.DecodeError:
        found = None
    if found is None or JOURNAL not in found.files:
        raise BackupError(f"{backup} is no backup of ours: it does not begin with what it holds")
    if found.journal_format > FORMAT:
        raise BackupError(
            f"{backup} was made by Fairlead {found.made_by}, whose journal this version ({version()}) cannot read; "
            "restore it with that one, or a newer one"
        )
    return found


def _is_ours(name: str) -> bool:
    """Whether such a file belongs to a state: nothing is ever written elsewhere."""
    parts = name.split("/")
    if len(parts) == 1:
        return name == JOURNAL or name in BESIDE
    return len(parts) == 3 and parts[0] == _RUNS and ".." not in parts and parts[2].startswith((STDOUT, STDERR))


def _read_back(backup: Path) -> None:
    for manifest, member, file in _members(backup):
        if _digest_of(file) != manifest.files[member.name]:
            raise BackupError(f"{member.name} changed while it was copied; try again")


def _unpack(backup: Path, directory: Path, root: bool) -> Manifest:
    found: Manifest | None = None
    for manifest, member, file in _members(backup):
        found = manifest
        target = directory / member.name
        for above in reversed(target.relative_to(directory).parents[:-1]):
            (directory / above).mkdir(mode=0o711 if root else 0o700, exist_ok=True)
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as out:
            shutil.copyfileobj(file, out, _PIECE)
            out.flush()
            os.fsync(out.fileno())
        if _digest(target) != manifest.files[member.name]:
            raise BackupError(f"{backup} is damaged: {member.name} is not what was written")
        if root and target.parent != directory:
            os.chown(target, member.uid, member.gid)
    if found is None:
        raise BackupError(f"{backup} is damaged: nothing is in it")
    return found


def _give_up_runs(directory: Path, manifest: Manifest) -> None:
    """What ran is not executed once more: it is lost for those who start here."""
    note = "it ran when the backup was made from which this state was restored"
    for run in manifest.runs:
        if not KEY.fullmatch(run):
            raise BackupError(f"it names a run {run!r}, which is none")
        place = directory / _RUNS / run
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = {"lost": True, "note": note, "ended_at_ms": manifest.made_at_ms}
        run_files.write(str(place), run_files.FORGOTTEN, record)


def _require_journal(path: Path, manifest: Manifest) -> None:
    result = verify(path)
    if not result.ok or result.recovery_from is None:
        raise BackupError(f"the journal in it is damaged: {result.problems[0].what if result.problems else 'no start'}")
    if result.sizes is None or result.sizes.last_seq != manifest.last_seq:
        raise BackupError("the journal in it is not the one that was written down")
