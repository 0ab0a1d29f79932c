"""`fairlead kubernetes`: schedule a Kubernetes cluster.

Decides nothing but how options become the scheduler's own. Never runs in the background: the cluster, or `&`, does
that. Invariant: what is wrong with an option is said before anything is sent to the cluster.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from fairlead.cli import webhook
from fairlead.cli.app import Group, Status, Whole
from fairlead.cli.failures import Failure, wrong_usage
from fairlead.cli.logs import log_as, log_format_option, log_level_option
from fairlead.cli.options import context_option, kubeconfig_option
from fairlead.places import DEFAULT_PORT

_EXAMPLES = """
fairlead kubernetes run
fairlead kubernetes run --queues queues.yaml --kubeconfig ~/.kube/config --context staging
fairlead kubernetes run --config-map fairlead/queues --leader-elect --listen 0.0.0.0:8080
"""


kubernetes = Group("kubernetes", help="Schedule a Kubernetes cluster: pods with `schedulerName: fairlead`.")


@kubernetes.command("run", examples=_EXAMPLES)
@kubeconfig_option
@context_option
@click.option("--queues", type=click.Path(path_type=Path), metavar="FILE", help="A queues.yaml; watched for changes.")
@click.option("--config-map", metavar="NS/NAME", help="A ConfigMap with the key queues.yaml; watched for changes.")
@click.option("--scheduler-name", default="fairlead", metavar="NAME", help="Pods with this schedulerName are ours.")
@click.option("--leader-elect", is_flag=True, help="Schedule only while holding the lease: for several replicas.")
@click.option(
    "--lease", default="fairlead", metavar="[NS/]NAME", help="The lease [in the namespace of the credentials]."
)
@click.option(
    "--listen",
    default=f"127.0.0.1:{DEFAULT_PORT}",
    metavar="HOST:PORT",
    help="Probes, figures and questions over HTTP; off: none.",
)
@click.option("--open-reads", is_flag=True, help="Let anyone who reaches the port read without a token.")
@click.option("--placeholder-image", metavar="IMAGE", help="What placeholders of gangs run.")
@click.option(
    "--at-once", type=Whole(1, 1000), default=48, metavar="N", help="Requests that change something in flight."
)
@log_level_option
@log_format_option
def run(
    kubeconfig: str | None,
    context: str | None,
    queues: Path | None,
    config_map: str | None,
    scheduler_name: str,
    leader_elect: bool,
    lease: str,
    listen: str,
    open_reads: bool,
    placeholder_image: str | None,
    at_once: int,
    log_level: str,
    log_format: str,
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
    log_as(log_format)
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


kubernetes.add_command(webhook.webhook)
