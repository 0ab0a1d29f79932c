"""A service that speaks TLS over TCP: who trusts it is served, others are told why not, and nothing goes plain."""

from __future__ import annotations

import asyncio
import http.client
import shutil
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from testbed.certificates import Made, make_certificate

from fairlead.client import Address, AsyncClient, Client, Misconfigured, Refused, Untrusted
from fairlead.service.http.sockets import ListenError, Tcp
from fairlead.service.serve import Listening, ServeOptions

pytestmark = pytest.mark.real


class Secure:
    """A service with a certificate for `localhost`."""

    def __init__(self, folder: Path, stack: ExitStack, run: Any) -> None:
        self.folder, self.made = folder, make_certificate(folder, "service", "localhost")
        options = ServeOptions(
            state_dir=folder / "state",
            socket=folder / "s",
            port=0,
            pages_port=0,
            tls_cert=self.made.cert,
            tls_key=self.made.key,
        )
        self.listening: Listening
        self.place, self.listening = run(options, stack, lambda place: None)
        self.url = self.listening.url or ""
        self.token = Client(Address(socket=str(folder / "s"))).create_token(name="test", user="").token

    def address(self, url: str = "", ca: Path | None = None) -> Address:
        return Address.of_url(url or self.url, self.token, ca=str(self.made.cert if ca is None else ca))

    def trusting(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.made.cert)


@pytest.fixture(scope="module")
def secure(run: Any) -> Iterator[Secure]:
    folder = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        yield Secure(folder, stack, run)


def test_who_trusts_it_is_served(secure: Secure) -> None:
    """By the name in its certificate, with a token, by both clients; a job's output comes as well."""
    assert secure.url.startswith("https://localhost:")
    client = Client(secure.address())
    [job] = client.submit([{"command": ["echo", "hello"], "cwd": "/"}]).jobs
    assert b"".join(client.follow(job.key)) == b"hello\n"

    async def ask() -> str:
        return (await AsyncClient(secure.address()).wait(job.key)).state

    assert asyncio.run(ask()) == "succeeded"


def test_a_terminal_over_tls(secure: Secure) -> None:
    """Both ways; that TLS has something to say of its own is not taken for output."""
    client = Client(secure.address())
    [job] = client.submit([{"command": ["sh", "-c", "read a; echo got $a"], "cwd": "/", "terminal": True}]).jobs
    written = b""
    with client.terminal(job.key) as terminal:
        terminal.type(b"this\n")
        while not terminal.over:
            written += terminal.receive()
    assert b"got this" in written


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_who_does_not_trust_it_is_told_why(secure: Secure, client: Any, tmp_path: Path) -> None:
    """Not signed by who is believed; another name than the one asked for; a file with no certificate; no TLS at all."""

    def said(address: Address, kind: type[Exception]) -> str:
        async def ask() -> None:
            answer = client(address).service()
            if asyncio.iscoroutine(answer):
                await answer

        with pytest.raises(kind) as caught:
            asyncio.run(ask())
        return str(caught.value)

    other = make_certificate(tmp_path, "other", "localhost")
    system = Address.of_url(secure.url, secure.token)
    assert "signed by an authority that this machine knows; name the file" in said(system, Untrusted)
    assert f"was not signed by what is in {other.cert}" in said(secure.address(ca=other.cert), Untrusted)
    by_number = secure.address(secure.url.replace("localhost", "127.0.0.1"))
    assert "its certificate is for other names than 127.0.0.1" in said(by_number, Untrusted)
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    assert "empty.pem holds no certificate in the PEM format" in said(secure.address(ca=empty), Misconfigured)
    assert "nowhere cannot be read: No such file" in said(secure.address(ca=tmp_path / "nowhere"), Misconfigured)
    plain = Address.of_url(secure.url.replace("https", "http"), secure.token)
    assert "this port speaks TLS alone; write https:// in front of its address" in said(plain, Refused)


def test_what_speaks_no_tls_is_told_apart(secure: Secure) -> None:
    """By a client that was told https://."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = secure.address(f"https://127.0.0.1:{listening.getsockname()[1]}")

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        with ExitStack() as stack:
            thread = threading.Thread(target=answer)
            thread.start()
            stack.callback(thread.join)
            with pytest.raises(Untrusted, match="does not speak TLS; is it http:// there"):
                Client(address).service()


def test_a_new_certificate_is_taken_while_it_runs(secure: Secure) -> None:
    """Without a restart; what is open goes on."""
    host, port = "localhost", int(secure.url.rpartition(":")[2])
    open_before = http.client.HTTPSConnection(host, port, context=secure.trusting(), timeout=20)
    headers = {"Authorization": f"Bearer {secure.token}"}
    open_before.request("GET", "/api/v1/info", headers=headers)
    open_before.getresponse().read()
    old = (secure.folder / "old.pem", secure.made)
    old[0].write_bytes(secure.made.cert.read_bytes())
    new: Made = make_certificate(secure.folder, "new", "localhost")
    new.cert.replace(secure.made.cert)
    new.key.replace(secure.made.key)
    end = time.monotonic() + 60
    while True:
        try:
            assert Client(secure.address()).service().problems == []
            break
        except Untrusted:
            assert time.monotonic() < end
            time.sleep(0.1)
    with pytest.raises(Untrusted):
        Client(secure.address(ca=old[0])).service()
    open_before.request("GET", "/api/v1/info", headers=headers)
    assert open_before.getresponse().status == 200
    open_before.close()


def test_the_pages_are_behind_it_too(secure: Secure) -> None:
    """`/` leads there over TLS, and the cookie of a session is sent over TLS alone."""
    client = Client(secure.address())
    ticket = client.ticket()
    assert ticket.url.startswith("https://localhost:")
    context, port = secure.trusting(), int(ticket.url.rpartition(":")[2])
    front = http.client.HTTPSConnection("localhost", int(secure.url.rpartition(":")[2]), context=context, timeout=60)
    front.request("GET", "/")
    assert front.getresponse().headers["location"] == f"{ticket.url}/"
    front.close()
    pages = http.client.HTTPSConnection("localhost", port, context=context, timeout=60)
    pages.request("GET", f"/enter?ticket={ticket.ticket}")
    answer = pages.getresponse()
    assert answer.status == 200
    assert "secure" in answer.headers["set-cookie"].lower().split("; ")
    answer.read()
    pages.request("GET", "/line", headers={"Cookie": answer.headers["set-cookie"].partition(";")[0]})
    assert pages.getresponse().status == 200
    pages.close()
    plain = http.client.HTTPConnection("localhost", port, timeout=60)
    plain.request("GET", "/sign-in")
    refused = plain.getresponse()
    assert (refused.status, b"speaks TLS alone" in refused.read()) == (400, True)
    plain.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_beyond_loopback_without_tls_is_refused(host: str, tmp_path: Path) -> None:
    """Unless it was said; with a certificate it is as it should be."""
    if host == "::" and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with pytest.raises(ListenError, match="reached from other machines, and without TLS tokens and output could be"):
        Tcp(host).listen(0)
    Tcp(host, allow_plain=True).listen(0).close()
    made = make_certificate(tmp_path, "a", "a.example")
    tcp = Tcp.of(host, made.cert, made.key)
    with tcp.listen(0) as listening:
        assert tcp.url(listening).startswith("https://a.example:")
    with pytest.raises(ListenError, match="needs a certificate; give --tls-cert FILE, too"):
        Tcp.of(host, None, made.key)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "localhost"])
def test_loopback_needs_no_tls(host: str) -> None:
    """By any of its addresses."""
    Tcp(host).listen(0).close()


def test_the_unix_socket_needs_no_tls(secure: Secure) -> None:
    """The kernel says who calls there."""
    assert Client(Address(socket=str(secure.folder / "s"))).service().machine is not None
    assert (secure.folder / "s").stat().st_mode & 0o777 == 0o666
