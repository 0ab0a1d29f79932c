"""The certificate of a service: what is refused, and how it is read anew."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.certificates import Made, make_certificate

from fairlead.tls.certificate import Certificate, CertificateError


def replace(made: Made, by: Made) -> None:
    by.cert.replace(made.cert)
    by.key.replace(made.key)


def expired(folder: Path) -> tuple[Path, Path]:
    made = make_certificate(folder, "a", "localhost", days=-1)
    return made.cert, made.key


def too_early(folder: Path) -> tuple[Path, Path]:
    made = make_certificate(folder, "a", "localhost", days=9, begins_in_days=2)
    return made.cert, made.key


def of_another(folder: Path) -> tuple[Path, Path]:
    return make_certificate(folder, "a").cert, make_certificate(folder, "b").key


def locked(folder: Path) -> tuple[Path, Path]:
    made = make_certificate(folder, "a", passphrase=b"secret")
    return made.cert, made.key


def not_there(folder: Path) -> tuple[Path, Path]:
    return folder / "nowhere.pem", folder / "nowhere.key"


def no_key(folder: Path) -> tuple[Path, Path]:
    made = make_certificate(folder, "a")
    return made.cert, made.cert


def broken(folder: Path) -> tuple[Path, Path]:
    made = make_certificate(folder, "a")
    made.cert.write_text(made.cert.read_text()[:200] + "\n-----END CERTIFICATE-----\n")
    return made.cert, made.key


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (expired, r"the time of the certificate .*a\.pem is over; put a new one there"),
        (too_early, r"the time of the certificate .*a\.pem has not begun; look at it, and at this machine's clock"),
        (of_another, r"the key .*b\.key does not belong to the certificate .*a\.pem"),
        (locked, r"the key .*a\.key is locked with a passphrase.*unlock it: openssl pkey"),
        (not_there, r"the certificate .*nowhere\.pem cannot be read: No such file or directory"),
        (no_key, r"a\.pem holds no private key in the PEM format"),
        (broken, r"the certificate .*a\.pem and the key .*a\.key cannot be used"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_callers_would_refuse_is_not_taken(
    tmp_path: Path, files: Callable[[Path], tuple[Path, Path]], said: str
) -> None:
    """At the start, with what to do."""
    with pytest.raises(CertificateError, match=said):
        Certificate(*files(tmp_path))


def test_one_of_an_authority_in_one_file_with_its_key(tmp_path: Path) -> None:
    """The authority need not be there."""
    authority = make_certificate(tmp_path, "authority", authority=True)
    made = make_certificate(tmp_path, "a", "*.example", "a.example", "127.0.0.1", by=authority)
    both = tmp_path / "both.pem"
    both.touch(mode=0o600)
    both.write_text(made.cert.read_text() + made.key.read_text())
    found = Certificate(both)
    assert found.problems() == []
    assert found.host("127.0.0.1") == "127.0.0.1"
    assert found.host("0.0.0.0") == "a.example"
    assert Certificate(authority.cert, authority.key).host("0.0.0.0") == "0.0.0.0"


def test_that_its_end_is_near_and_that_all_can_read_its_key_is_said(tmp_path: Path) -> None:
    """As sentences with what to do."""
    made = make_certificate(tmp_path, "a", "localhost", days=3)
    made.key.chmod(0o644)
    near, open_key = Certificate(made.cert, made.key).problems()
    assert "a.pem is over at" in near
    assert open_key.endswith(f"can read the key {made.key}; run: chmod o-r {made.key}")


async def test_it_is_read_anew_when_its_files_change(tmp_path: Path) -> None:
    """One that cannot be used is not taken: the one before it goes on, and why is said until there is a good one."""
    made = make_certificate(tmp_path, "a", "one.example")
    found = Certificate(made.cert, made.key)
    watching = asyncio.create_task(found.watch(0.01))

    async def until(true: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not true():
                await asyncio.sleep(0.01)

    replace(made, make_certificate(tmp_path, "b", "two.example"))
    await until(lambda: found.host("") == "two.example")
    before = found.context
    replace(made, make_certificate(tmp_path, "c", "three.example", days=-1))
    await until(found.problems)
    assert found.problems()[0].startswith("the new certificate is not used, the one before it is: the time of the")
    assert (found.host(""), found.context) == ("two.example", before)
    made.cert.unlink()
    await until(lambda: "cannot be read" in found.problems()[0])
    replace(made, make_certificate(tmp_path, "d", "four.example"))
    await until(lambda: found.host("") == "four.example")
    assert found.problems() == []
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching


async def test_one_whose_time_begins_is_taken_then(tmp_path: Path) -> None:
    """Nothing changes in its files at that moment; nor do they look otherwise when it may be read at last."""
    made = make_certificate(tmp_path, "a", "one.example")
    found = Certificate(made.cert, made.key)
    watching = asyncio.create_task(found.watch(0.01))
    replace(made, make_certificate(tmp_path, "b", "two.example", begins_in_days=3 / 86_400))
    async with asyncio.timeout(60):
        while not found.problems():
            await asyncio.sleep(0.01)
        assert "has not begun" in found.problems()[0]
        while found.host("") != "two.example":
            await asyncio.sleep(0.01)
    assert found.problems() == []
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching


async def test_files_that_go_away_while_they_are_read_do_not_end_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when both are replaced one after the other: it is said, and the next ones are taken."""
    made = make_certificate(tmp_path, "a", "one.example")
    found = Certificate(made.cert, made.key)
    watching = asyncio.create_task(found.watch(0.01))
    read = Path.read_bytes

    def and_gone(path: Path) -> bytes:
        content = read(path)
        if path == made.key:
            monkeypatch.undo()
            made.cert.unlink()
        return content

    monkeypatch.setattr(Path, "read_bytes", and_gone)
    replace(made, make_certificate(tmp_path, "b", "two.example"))
    async with asyncio.timeout(60):
        while not made.cert.exists() or found.host("") != "three.example":
            if not made.cert.exists():
                replace(made, make_certificate(tmp_path, "c", "three.example"))
            assert not watching.done(), watching.exception()
            await asyncio.sleep(0.01)
    watching.cancel()
