"""`fairlead kubernetes`: schedule a Kubernetes cluster.

Decides nothing but how options become the scheduler's own. Never runs in the background: the cluster, or `&`, does
that. Invariant: what is wrong with an option is said before anything is sent to the cluster.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from fairlead.cli import webhook
from fairlead.cli.address import DEFAULT_PORT
from fairlead.cli.app import Status, command, group
from fairlead.cli.failures import Failure, wrong_usage
from fairlead.cli.options import ContextOption, KubeconfigOption, LogLevelOption, check_log_level

_EXAMPLES = """
fairlead kubernetes run
fairlead kubernetes run --queues queues.yaml --kubeconfig ~/.kube/config --context staging
fairlead kubernetes run --config-map fairlead/queues --leader-elect --listen 0.0.0.0:8080
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    place = group("kubernetes", "Schedule a Kubernetes cluster: pods with `schedulerName: fairlead`.")
    place.callback()(_nothing)
    command(place, "run", examples=_EXAMPLES)(run)
    command(place, "webhook", examples=webhook.EXAMPLES)(webhook.webhook)
    app.add_typer(place)


def _nothing() -> None:
    """Make a group of what may have one command only."""


def run(
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    queues: Annotated[
        Path | None, typer.Option("--queues", metavar="FILE", help="A queues.yaml; watched for changes.")
    ] = None,
    config_map: Annotated[
        str | None,
        typer.Option(
            "--config-map", metavar="NS/NAME", help="A ConfigMap with the key queues.yaml; watched for changes."
        ),
    ] = None,
    scheduler_name: Annotated[
        str, typer.Option("--scheduler-name", metavar="NAME", help="Pods with this schedulerName are ours.")
    ] = "fairlead",
    leader_elect: Annotated[
        bool, typer.Option("--leader-elect", help="Schedule only while holding the lease: for several replicas.")
    ] = False,
    lease: Annotated[
        str, typer.Option("--lease", metavar="[NS/]NAME", help="The lease [in the namespace of the credentials].")
    ] = "fairlead",
    listen: Annotated[
        str,
        typer.Option("--listen", metavar="HOST:PORT", help="Probes, figures and questions over HTTP; off: none."),
    ] = f"127.0.0.1:{DEFAULT_PORT}",
    open_reads: Annotated[
        bool, typer.Option("--open-reads", help="Let anyone who reaches the port read without a token.")
    ] = False,
    placeholder_image: Annotated[
        str | None, typer.Option("--placeholder-image", metavar="IMAGE", help="What placeholders of gangs run.")
    ] = None,
    at_once: Annotated[
        int, typer.Option("--at-once", metavar="N", min=1, max=1000, help="Requests that change something in flight.")
    ] = 48,
    log_level: LogLevelOption = "info",
) -> Status:
    """Schedule the cluster until Ctrl-C or SIGTERM.

    Without queues of your own each namespace has one, and Kubernetes' rules of preemption count. Everything is read
    from the cluster at the start; nothing is kept here. It ends with status 1 when it lost its lease, to be started
    anew.
    """
    if queues is not None and config_map is not None:
        raise wrong_usage("--queues and --config-map name two queue files; give one of them")
    if config_map is not None and len([part for part in config_map.split("/") if part]) != 2:
        raise wrong_usage(f"--config-map: write NAMESPACE/NAME, not {config_map!r}")
    if queues is not None and not queues.is_file():
        raise wrong_usage(f"--queues: there is no file {queues}")
    check_log_level(log_level)
    host, port = _address(listen)
    namespace, _, name = lease.rpartition("/")
    _require()
    from fairlead.kubernetes.bodies import IMAGE
    from fairlead.kubernetes.controller import ControllerOptions
    from fairlead.service.kubernetes.serve import ClusterServiceOptions, serve_cluster

    controller = ControllerOptions(
        queues=queues,
        config_map=config_map or "",
        scheduler_name=scheduler_name,
        leader_elect=leader_elect,
        lease=name,
        lease_namespace=namespace,
        image=placeholder_image or IMAGE,
        at_once=at_once,
    )
    return serve_cluster(
        ClusterServiceOptions(
            controller=controller,
            kubeconfig=kubeconfig,
            context=context,
            host=host,
            port=port,
            open_reads=open_reads,
            log_level=log_level,
        )
    )


def _address(text: str) -> tuple[str, int | None]:
    """Host and port of `HOST:PORT`; no port for `off`. Raises `Failure` (usage)."""
    if text == "off":
        return "", None
    host, _, port = text.rpartition(":")
    if not (port.isdecimal() and int(port) < 65536):
        raise wrong_usage(f"--listen: write HOST:PORT such as 0.0.0.0:8080, or off, not {text!r}")
    return host.strip("[]") or "0.0.0.0", int(port)


def _require() -> None:
    """Say what is missing of the extra, before anything of it is imported."""
    for module in ("aiohttp", "fastapi", "uvicorn"):
        if importlib.util.find_spec(module) is None:
            raise Failure(f"Kubernetes needs {module}, which is not installed; run: pip install 'fairlead[k8s]'")
