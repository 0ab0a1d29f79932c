"""Files of jobs in YAML, as `submit --file` takes them.

Decides what a word without quotes is there: a number, yes or no, else a text. Never looks at what a job says.
Invariant: what the documentation writes without quotes (`begin: 16:00`, `begin: 2026-12-31`) is the text that stands
there, as in JSON.
"""

from __future__ import annotations

from typing import Any

from fairlead.cli.app import wrong_usage

TOO_DEEP = "is nested too deep to be a list of jobs"
_DATE, _NUMBERS = "tag:yaml.org,2002:timestamp", ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_TEXT = "tag:yaml.org,2002:str"


def load_yaml(path: str, text: str) -> Any:
    """What is in it. Raises `Failure` (usage) with the place of what is no YAML."""
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML without dates, and without the numbers of base 60 that 1.1 has and 1.2 does not: `16:00` is not 960."""

        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            tag = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
            return _TEXT if tag == _DATE or (tag in _NUMBERS and ":" in value) else tag

    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise wrong_usage(f"{path}{place}: is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise wrong_usage(f"{path}: is not YAML: {error}") from None
    except RecursionError:
        raise wrong_usage(f"{path}: {TOO_DEEP}") from None
