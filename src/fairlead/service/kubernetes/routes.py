"""Routes that only a cluster has: probes, and refusals of what is `kubectl`'s business.

Decides nothing. Invariant: none of them changes anything in the cluster or in the books.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Response

from fairlead.runtime import Refusal
from fairlead.service.http.app import get_health
from fairlead.service.http.shaped import ShapedRoute, content, shown
from fairlead.service.kubernetes.place import ClusterPlace
from fairlead.service.place import place_of
from fairlead.wire.cluster import Health

probes = APIRouter(tags=["service"], route_class=ShapedRoute)
last = APIRouter(prefix="/api/v1")
"""What is asked of a machine and cannot be asked of a cluster."""
NOT_HERE = "a cluster is changed through its API server, not here: kubectl delete, cordon, patch or apply does it"
ClusterOf = Annotated[ClusterPlace, Depends(place_of)]

probes.get("/livez", operation_id="getLiveness")(get_health)


@probes.get("/readyz", responses={503: content(Health, "Not everything of the cluster is known yet.")})
async def get_readiness(place: ClusterOf) -> Health | Response:
    """Whether everything of the cluster is known, or another process leads and this one stands by."""
    ready = place.controller.ready
    return shown(Health(status="ok" if ready else "starting", problems=place.problems()), 200 if ready else 503)


@last.get("/jobs/{key}/logs", include_in_schema=False)
async def get_job_logs(key: str) -> Response:
    """What a pod wrote."""
    namespace, _, name = unquote(key).rpartition("/")
    where = "" if namespace in ("", "default") else f" -n {namespace}"
    raise Refusal("not-found", f"a cluster keeps what its pods write: `kubectl logs {name}{where}` shows it")


@last.api_route("/{what:path}", methods=["POST", "PUT", "PATCH", "DELETE"], include_in_schema=False)
async def not_here(what: str) -> Response:
    """Whatever would change something."""
    del what
    raise Refusal("method-not-allowed", NOT_HERE)


ROUTERS = [probes, last]
