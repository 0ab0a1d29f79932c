"""`fairlead kubernetes webhook`: complete pods and check the queue file before they are stored.

Decides nothing but how options become the webhook's own. Invariant: what is wrong with an option is said before
anything is sent to the cluster.
"""

from __future__ import annotations

import importlib.util

import click

from fairlead.cli.app import Status, command
from fairlead.cli.failures import Failure, wrong_usage
from fairlead.cli.logs import log_as, log_format_option, log_level_option
from fairlead.cli.options import context_option, kubeconfig_option

EXAMPLES = """
fairlead kubernetes webhook --queue-file fairlead/fairlead-queues
fairlead kubernetes webhook --namespaces 'team-*' --except team-old --applications owner
fairlead kubernetes webhook --trust-user system:serviceaccount:spark:operator
"""
_APPLICATIONS = ("namespace", "owner", "pod", "none")


@command("webhook", examples=EXAMPLES)
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
    secret: str,
    configuration: str,
    names: tuple[str, ...],
    scheduler_name: str,
    namespaces: tuple[str, ...],
    excluded: tuple[str, ...],
    applications: str,
    write_users: bool,
    controllers: tuple[str, ...],
    trusted_users: tuple[str, ...],
    trusted_groups: tuple[str, ...],
    queue_file: str | None,
    log_level: str,
    log_format: str,
) -> Status:
    """Answer the API server's admission reviews until Ctrl-C or SIGTERM.

    Pods without a scheduler get ours, a queue and an application by the rules of their namespace, and the name of
    whoever submitted them. A queue file with errors is not stored. Certificates are made, shared by the replicas,
    renewed in time and made known to the API server.
    """
    if queue_file is not None and len([part for part in queue_file.split("/") if part]) != 2:
        raise wrong_usage(f"--queue-file: write NAMESPACE/NAME, not {queue_file!r}")
    if applications not in _APPLICATIONS:
        raise wrong_usage(f"--applications: {applications!r} is none of {', '.join(_APPLICATIONS)}")
    log_as(log_format)
    host, colon, port = listen.rpartition(":")
    if not (colon and port.isdecimal() and int(port) < 65536):
        raise wrong_usage(f"--listen: write HOST:PORT such as 0.0.0.0:8443, not {listen!r}")
    for module in ("aiohttp", "cryptography"):
        if importlib.util.find_spec(module) is None:
            raise Failure(f"the webhook needs {module}, which is not installed; run: pip install 'fairlead[k8s]'")
    from fairlead.kubernetes.admission.pods import CONTROLLERS, AdmissionRules, Applications
    from fairlead.kubernetes.admission.server import WebhookOptions, serve_webhook

    namespace, _, service_name = service.rpartition("/")
    rules = AdmissionRules(
        scheduler_name=scheduler_name,
        namespaces=tuple(namespaces or ["*"]),
        excluded=tuple(excluded or ["kube-*"]),
        applications=Applications(applications),
        write_users=write_users,
        controllers=tuple(controllers or CONTROLLERS),
        trusted_users=tuple(trusted_users or ()),
        trusted_groups=tuple(trusted_groups or ()),
    )
    options = WebhookOptions(
        rules=rules,
        host=host.strip("[]"),
        port=int(port),
        service=service_name,
        namespace=namespace,
        secret=secret,
        configuration=configuration,
        config_map=queue_file or "",
        names=tuple(names or ()),
    )
    return serve_webhook(options, kubeconfig, context, log_level)
