"""Files of jobs in YAML, as `submit --file` takes them.

Decides what a word without quotes is there: a number, yes or no, else a text. Never looks at what a job says.
Invariant: what the documentation writes without quotes (`begin: 16:00`, `begin: 2026-12-31`) is the text that stands
there, as in JSON, and so is a number that would be written otherwise (`1.10`, `0123`).
"""

from __future__ import annotations

from typing import Any

from fairlead.cli.app import wrong_usage

TOO_DEEP = "is nested too deep to be a list of jobs"
_DATE, _NUMBERS = "tag:yaml.org,2002:timestamp", ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_TEXT = "tag:yaml.org,2002:str"


def _is_as_written(number: str) -> bool:
    """Whether the number that this is would be written so: what is a text to a job is not to become another one."""
    try:
        return str(float(number) if "." in number else int(number)) == number
    except ValueError:
        return False


def load_yaml(path: str, text: str) -> Any:
    """What is in it. Raises `Failure` (usage) with the place of what is no YAML."""
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML without dates, and without numbers in a form of their own: `16:00` is not 960, nor 010 8."""

        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            tag = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
            return _TEXT if tag == _DATE or (tag in _NUMBERS and not _is_as_written(value)) else tag

        def compose_mapping_node(self, anchor: Any) -> Any:
            node, seen = super().compose_mapping_node(anchor), set[str]()
            for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
                if key.value in seen:
                    said = f"{key.value} is given twice; give it once"
                    raise yaml.MarkedYAMLError(problem=said, problem_mark=key.start_mark)
                seen.add(key.value)
            return node

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
