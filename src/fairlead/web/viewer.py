"""Who looks: a session of the service, and the client that shows it with every call.

Decides how a ticket or a token becomes a session. Never decides what a viewer may see: each call is answered by the
service as it answers that user, so the rights of the API hold. Invariant: no call of a viewer goes out without the
session, though the service would take this process for its own user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fairlead.client.address import Address
from fairlead.client.asynchronous import AsyncClient

COOKIE = "fairlead_session"
SESSION_BEGINS = "fls_"


Kind = Literal["machine", "cluster", "course"]
"""What is looked at. On a cluster jobs are pods, and a course is what was recorded: of both whoever may ask sees all,
and nothing is changed from here.
"""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who looks."""

    session: str
    user: str
    is_admin: bool
    client: AsyncClient
    of: Kind

    @property
    def acts(self) -> bool:
        """Whether anything can be changed from here."""
        return self.of == "machine" and not self.is_guest

    @property
    def is_guest(self) -> bool:
        """Whether this is nobody in particular, who may look."""
        return not self.user

    @property
    def rights(self) -> tuple[str, bool]:
        """Whoever has the same is answered the same: pages of all of them share answers."""
        return ("", True) if self.is_admin or self.of != "machine" else (self.user, False)


class Service:
    """Where the service is that these pages show."""

    def __init__(self, where: str) -> None:
        """`where`: the path of its Unix socket, or its URL."""
        self._where = where

    def client(self, credential: str) -> AsyncClient:
        """A client that shows a session, a ticket or a token. Raises `ValueError` for none."""
        if not credential:
            raise ValueError("nobody looks")
        if "://" in self._where:
            return AsyncClient(Address.of_url(self._where, credential))
        return AsyncClient(Address(socket=self._where, token=credential))

    async def sign_in(self, credential: str) -> tuple[str, int]:
        """A session for a ticket or a token, and when it expires. Raises `ClientError`."""
        begun = await self.client(credential).begin_session()
        return begun.session, begun.expires_at_ms

    async def viewer(self, session: str) -> Viewer:
        """Whoever has this session. Raises `ClientError`: it is over, or the service does not answer."""
        client = self.client(session)
        about = await client.service()
        of: Kind = "cluster" if about.cluster is not None else "course" if about.course is not None else "machine"
        return Viewer(session, about.user, about.is_admin, client, of)
