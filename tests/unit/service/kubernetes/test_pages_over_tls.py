"""A cluster's pages where the service speaks TLS alone: their process has a way of its own to it."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import aiohttp
import pytest
from testbed.certificates import make_certificate
from testbed.cluster_service import serving

from fairlead.client import Address, AsyncClient
from fairlead.service.http.sockets import Tcp

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


@pytest.mark.thorough
async def test_the_pages_of_a_cluster_are_behind_tls_too(tmp_path: Path) -> None:
    """They ask over a Unix socket without a file, which nobody else may reach, and only as whoever looks."""
    made = make_certificate(tmp_path, "service", "localhost")
    trusting = ssl.create_default_context(cafile=made.cert)
    async with serving(1, pages=True, tcp=Tcp.of("localhost", made.cert, made.key)) as service:
        [inside] = service.place.pages.inside
        assert not Path(inside.getsockname()).parent.exists()
        way_in = Path(f"/proc/self/fd/{service.place.pages._way}")
        assert stat.S_IMODE(way_in.stat().st_mode) == 0o600
        with pytest.raises(aiohttp.ClientResponseError, match="401"):
            await _through(way_in, "/api/v1/jobs")
        ticket = await AsyncClient(Address.of_url(service.url, "", ca=str(made.cert))).ticket()
        assert ticket.url.startswith("https://localhost:")
        async with aiohttp.ClientSession() as browser:
            answer = await browser.get(f"{ticket.url}/enter?ticket={ticket.ticket}", ssl=trusting)
            cookie = answer.headers["set-cookie"].partition(";")[0]
            line = await browser.get(f"{ticket.url}/line", ssl=trusting, headers={"Cookie": cookie})
            assert (line.status, "What starts next" in await line.text()) == (200, True)


async def _through(socket: Path, path: str) -> str:
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket)), raise_for_status=True) as session:
        return await (await session.get(f"http://localhost{path}")).text()
