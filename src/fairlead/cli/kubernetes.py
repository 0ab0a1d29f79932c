"""`fairlead kubernetes`: schedule a Kubernetes cluster, and complete pods before they are stored.

Decides nothing but how options become those of the scheduler and of the webhook. Never runs in the background: the
cluster, or `&`, does that. Invariant: what is wrong with an option is said before anything is sent to the cluster.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import click

from fairlead.cli.app import Failure, Group, Status, wrong_usage
from fairlead.cli.logs import log_as, log_format_option, log_level_option
from fairlead.cli.tls import tls_options
from fairlead.collector import collector_off
from fairlead.places import DEFAULT_PORT, port_of_pages

_EXAMPLES = """
fairlead kubernetes run
fairlead kubernetes run --queues queues.yaml --kubeconfig ~/.kube/config --context staging
fairlead kubernetes run --config-map fairlead/queues --leader-elect --listen 0.0.0.0:8080 --tls-cert tls.pem
"""


kubeconfig_option = click.option(
    "--kubeconfig", metavar="FILE", help="Else KUBECONFIG, the pod's service account, or ~/.kube/config."
)
context_option = click.option("--context", metavar="NAME", help="A context of it [its current one].")
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
    help="Probes, figures and questions over HTTP, beyond loopback with TLS alone (--tls-cert); off: none.",
)
@tls_options
@click.option(
    "--pages-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="TCP port of the pages [the one after --listen's]; their process starts when somebody looks.",
)
@click.option("--no-pages", is_flag=True, help="No pages for browsers.")
@click.option("--open-reads", is_flag=True, help="Let anyone who reaches the port read without a token.")
@click.option("--pod", metavar="NS/NAME", help="The pod it runs in, to be labelled as leader while it schedules.")
@click.option(
    "--image-locality/--no-image-locality",
    default=False,
    help="Prefer nodes that have a pod's images, as kube-scheduler does [no].",
)
@click.option("--placeholder-image", metavar="IMAGE", help="What placeholders of gangs run.")
@click.option(
    "--at-once", type=click.IntRange(1, 1000), default=48, metavar="N", help="Requests that change something in flight."
)
@log_level_option
@log_format_option
def run(
    queues: Path | None,
    config_map: str | None,
    scheduler_name: str,
    leader_elect: bool,
    lease: str,
    listen: str,
    pages_port: int | None,
    no_pages: bool,
    pod: str | None,
    placeholder_image: str | None,
    at_once: int,
    image_locality: bool,
    log_format: str,
    **given: Any,
) -> Status:
    """Schedule the cluster until Ctrl-C or SIGTERM.

    Without queues of your own each namespace has one, and Kubernetes' rules of preemption count. Everything is read
    from the cluster at the start; nothing is kept here. It ends with status 1 when it lost its lease, to be started
    anew.
    """
    if queues is not None and config_map is not None:
        raise wrong_usage("--queues and --config-map name two queue files; give one of them")
    _require_pair("--config-map", config_map)
    _require_pair("--pod", pod)
    if queues is not None and not queues.is_file():
        raise wrong_usage(f"--queues: there is no file {queues}")
    log_as(log_format)
    host, port = ("", None) if listen == "off" else _address(listen, "0.0.0.0:8080, or off")
    namespace, _, name = lease.rpartition("/")
    _require("Kubernetes", "aiohttp", "fastapi", "uvicorn")
    with collector_off():
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
        pod=pod or "",
        image=placeholder_image or IMAGE,
        at_once=at_once,
        image_locality=image_locality,
    )
    pages = None if no_pages or port is None else port_of_pages(port, pages_port)
    return serve_cluster(ClusterServiceOptions(controller=controller, host=host, port=port, pages_port=pages, **given))


def _address(text: str, example: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`. Raises `Failure` (usage)."""
    host, colon, port = text.rpartition(":")
    if not (colon and port.isdecimal() and int(port) < 65536):
        raise wrong_usage(f"--listen: write HOST:PORT such as {example}, not {text!r}")
    return host.strip("[]") or "0.0.0.0", int(port)


def _require_pair(option: str, text: str | None) -> None:
    """Raises `Failure` (usage) for what does not name a thing in a namespace."""
    if text is not None and len([part for part in text.split("/") if part]) != 2:
        raise wrong_usage(f"{option}: write NAMESPACE/NAME, not {text!r}")


def _require(what: str, *modules: str) -> None:
    """Say what is missing of the extra, before anything of it is imported."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise Failure(f"{what} needs {module}, which is not installed; run: pip install 'fairlead[k8s]'")


_WEBHOOK_EXAMPLES = """
fairlead kubernetes webhook --queue-file fairlead/fairlead-queues
fairlead kubernetes webhook --namespaces 'team-*' --except team-old --applications owner
fairlead kubernetes webhook --trust-user system:serviceaccount:spark:operator
"""


@kubernetes.command("webhook", examples=_WEBHOOK_EXAMPLES)
@kubeconfig_option
@context_option
@click.option(
    "--listen", default="0.0.0.0:8443", metavar="HOST:PORT", help="Where reviews, probes and figures are served."
)
@click.option(
    "--service", default="fairlead-webhook", metavar="[NS/]NAME", help="The service that the API server calls."
)
@click.option(
    "--secret", default="fairlead-webhook", metavar="NAME", help="Where the replicas keep their certificates."
)
@click.option(
    "--certificates",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A folder with tls.crt and tls.key, as cert-manager makes them [they are made here].",
)
@click.option(
    "--configuration", default="fairlead", metavar="NAME", help="The webhook configurations that must trust it."
)
@click.option("--name", "names", multiple=True, metavar="NAME", help="A further name or address of the server.")
@click.option(
    "--scheduler-name", default="fairlead", metavar="NAME", help="Pods that name no scheduler are given this one."
)
@click.option("--namespaces", multiple=True, metavar="PATTERN", help="Pods of such namespaces are ours, as team-* [*].")
@click.option("--except", "excluded", multiple=True, metavar="PATTERN", help="But not of such namespaces [kube-*].")
@click.option(
    "--applications",
    type=click.Choice(["namespace", "owner", "pod", "none"]),
    default="namespace",
    metavar="HOW",
    help="Pods without an application share one by: namespace, owner, pod, none.",
)
@click.option("--users/--no-users", "write_users", default=True, help="Write into each pod who submitted it.")
@click.option(
    "--controller",
    "controllers",
    multiple=True,
    metavar="PATTERN",
    help="Users that make pods for others [the cluster's own].",
)
@click.option(
    "--trust-user", "trusted_users", multiple=True, metavar="PATTERN", help="Users who may submit in another's name."
)
@click.option(
    "--trust-group",
    "trusted_groups",
    multiple=True,
    metavar="PATTERN",
    help="Groups that may submit in another's name.",
)
@click.option("--queue-file", metavar="NS/NAME", help="The ConfigMap whose queues.yaml is checked.")
@log_level_option
@log_format_option
def webhook(
    kubeconfig: str | None,
    context: str | None,
    listen: str,
    service: str,
    namespaces: tuple[str, ...],
    excluded: tuple[str, ...],
    applications: str,
    controllers: tuple[str, ...],
    queue_file: str | None,
    scheduler_name: str,
    write_users: bool,
    trusted_users: tuple[str, ...],
    trusted_groups: tuple[str, ...],
    log_level: str,
    log_format: str,
    **given: Any,
) -> Status:
    """Answer the API server's admission reviews until Ctrl-C or SIGTERM.

    Pods without a scheduler get ours, a queue and an application by the rules of their namespace, and the name of
    whoever submitted them. A queue file with errors is not stored. Certificates are made, shared by the replicas,
    renewed in time and made known to the API server.
    """
    _require_pair("--queue-file", queue_file)
    log_as(log_format)
    host, port = _address(listen, "0.0.0.0:8443")
    _require("the webhook", "aiohttp", "cryptography")
    from fairlead.kubernetes.admission.pods import CONTROLLERS, AdmissionRules, Applications
    from fairlead.kubernetes.admission.server import WebhookOptions, serve_webhook

    namespace, _, service_name = service.rpartition("/")
    rules = AdmissionRules(
        scheduler_name=scheduler_name,
        namespaces=namespaces or ("*",),
        excluded=excluded or ("kube-*",),
        applications=Applications(applications),
        write_users=write_users,
        controllers=controllers or tuple(CONTROLLERS),
        trusted_users=trusted_users,
        trusted_groups=trusted_groups,
    )
    options = WebhookOptions(
        rules=rules,
        host=host,
        port=port,
        service=service_name,
        namespace=namespace,
        config_map=queue_file or "",
        **given,
    )
    return serve_webhook(options, kubeconfig, context, log_level)
