"""All routes of the YuniKorn interface together.

Decides which there are; the front needs them by method and path.
"""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter
from fastapi.routing import APIRoute

from fairlead.service.yunikorn import app_routes, routes, watch_routes

ROUTERS: tuple[APIRouter, ...] = (routes.router, app_routes.router, watch_routes.router, watch_routes.debug)


def known() -> Iterator[tuple[str, str]]:
    """Method and path of each."""
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute):
                for method in sorted(route.methods or ()):
                    yield method, route.path
