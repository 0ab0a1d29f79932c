"""`fairlead completion`: what a shell needs to complete commands, options, keys, queues and nodes.

Decides nothing: click writes the scripts. Never changes a file of the user.
"""

from __future__ import annotations

import click

from fairlead.cli.app import command

_EXAMPLES = """
eval "$(fairlead completion bash)"                               (in ~/.bashrc)
eval "$(fairlead completion zsh)"                                (in ~/.zshrc)
fairlead completion fish > ~/.config/fish/completions/fairlead.fish
"""


@command("completion", examples=_EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="SHELL", help="One of bash, zsh, fish.")
def completion(shell: str) -> None:
    """Print the script that makes a shell complete `fairlead`."""
    from click.shell_completion import get_completion_class

    from fairlead.cli.main import app

    kind = get_completion_class(shell)
    assert kind is not None, "click knows the three shells"
    print(kind(app, {}, "fairlead", "_FAIRLEAD_COMPLETE").source())
