"""All routes of the YuniKorn interface together.

Decides which there are; the front needs their paths.
"""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter
from fastapi.routing import APIRoute

from fairlead.service.yunikorn import app_routes, routes, watch_routes

ROUTERS: tuple[APIRouter, ...] = (routes.router, app_routes.router, watch_routes.router, watch_routes.debug)


def known() -> Iterator[str]:
    """The path of each."""
    for router in ROUTERS:
        yield from (route.path for route in router.routes if isinstance(route, APIRoute))
