"""`fairlead.service.http.sockets`: a socket file that stays does no harm."""

from __future__ import annotations

from pathlib import Path

from fairlead.service.http.sockets import remove_socket


def test_a_socket_that_the_disk_keeps_stops_nothing(tmp_path: Path) -> None:
    """The service ended with a traceback where its folder had become read-only; the next start replaces the file."""
    gone, kept = tmp_path / "gone", Path("/proc/version")
    gone.touch()
    for path in (gone, kept):
        remove_socket(path, path.lstat().st_ino)
    assert not gone.exists()
    assert kept.exists()
