"""`fairlead kubernetes webhook`: complete pods and check the queue file before they are stored.

Decides nothing but how options become the webhook's own. Invariant: what is wrong with an option is said before
anything is sent to the cluster.
"""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

from fairlead.cli.app import Status
from fairlead.cli.failures import Failure, wrong_usage
from fairlead.cli.options import ContextOption, KubeconfigOption, LogLevelOption, check_log_level

EXAMPLES = """
fairlead kubernetes webhook --queue-file fairlead/fairlead-queues
fairlead kubernetes webhook --namespaces 'team-*' --except team-old --applications owner
fairlead kubernetes webhook --trust-user system:serviceaccount:spark:operator
"""
_APPLICATIONS = ("namespace", "owner", "pod", "none")


def webhook(
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where reviews, probes and figures are served.")
    ] = "0.0.0.0:8443",
    service: Annotated[
        str, typer.Option("--service", metavar="[NS/]NAME", help="The service that the API server calls.")
    ] = "fairlead-webhook",
    secret: Annotated[
        str, typer.Option("--secret", metavar="NAME", help="Where the replicas keep their certificates.")
    ] = "fairlead-webhook",
    configuration: Annotated[
        str, typer.Option("--configuration", metavar="NAME", help="The webhook configurations that must trust it.")
    ] = "fairlead",
    names: Annotated[
        list[str] | None, typer.Option("--name", metavar="NAME", help="A further name or address of the server.")
    ] = None,
    scheduler_name: Annotated[
        str, typer.Option("--scheduler-name", metavar="NAME", help="Pods that name no scheduler are given this one.")
    ] = "fairlead",
    namespaces: Annotated[
        list[str] | None,
        typer.Option("--namespaces", metavar="PATTERN", help="Pods of such namespaces are ours, as team-* [*]."),
    ] = None,
    excluded: Annotated[
        list[str] | None, typer.Option("--except", metavar="PATTERN", help="But not of such namespaces [kube-*].")
    ] = None,
    applications: Annotated[
        str,
        typer.Option(
            "--applications",
            metavar="HOW",
            help="Pods without an application share one by: namespace, owner, pod, none.",
        ),
    ] = "namespace",
    write_users: Annotated[
        bool, typer.Option("--users/--no-users", help="Write into each pod who submitted it.")
    ] = True,
    controllers: Annotated[
        list[str] | None,
        typer.Option("--controller", metavar="PATTERN", help="Users that make pods for others [the cluster's own]."),
    ] = None,
    trusted_users: Annotated[
        list[str] | None,
        typer.Option("--trust-user", metavar="PATTERN", help="Users who may submit in another's name."),
    ] = None,
    trusted_groups: Annotated[
        list[str] | None,
        typer.Option("--trust-group", metavar="PATTERN", help="Groups that may submit in another's name."),
    ] = None,
    queue_file: Annotated[
        str | None,
        typer.Option("--queue-file", metavar="NS/NAME", help="The ConfigMap whose queues.yaml is checked."),
    ] = None,
    log_level: LogLevelOption = "info",
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
    check_log_level(log_level)
    host, colon, port = listen.rpartition(":")
    if not (colon and port.isdecimal() and int(port) < 65536):
        raise wrong_usage(f"--listen: write HOST:PORT such as 0.0.0.0:8443, not {listen!r}")
    for module in ("aiohttp", "cryptography"):
        if importlib.util.find_spec(module) is None:
            raise Failure(f"the webhook needs {module}, which is not installed; run: pip install 'fairlead[k8s]'")
    from fairlead.kubernetes.admission.process import serve_webhook
    from fairlead.kubernetes.admission.rules import CONTROLLERS, AdmissionRules, Applications
    from fairlead.kubernetes.admission.server import WebhookOptions

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
