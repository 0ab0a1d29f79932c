"""Build hook of the wheel: what decides and what moves virtual time as extension modules, compiled by mypyc.

Decides which modules are compiled (`COMPILED`, less `LEFT_PLAIN`) and with which options. Never writes beside the
sources, and changes nothing but the wheel: the plain files are in it too, and Python takes the extension module that
lies beside one. Invariant: without the switch of the hook (see `pyproject.toml`) this file is not even read.

The plugin hatch-mypyc does nearly this. It compiles in place, so that the extension modules lie among the sources for
as long as it takes (longer where it is broken off) and are found there instead of the sources; and it compiles one
file at a time. This hook is what is left of it without that.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = (
    "fairlead/core/**/*.py",
    "fairlead/policy/**/*.py",
    "fairlead/scheduler.py",
    # What moves virtual time, which makes one call for each of the scheduler's: simulations and forecasts.
    "fairlead/virtual_time.py",
    "fairlead/insight/futures.py",
    "fairlead/sim/attempts.py",
    "fairlead/sim/columns.py",
    "fairlead/sim/engine.py",
    "fairlead/sim/forecasting.py",
    "fairlead/sim/scenario.py",
)
"""Globs below `src`."""

LEFT_PLAIN = (
    "fairlead/**/__init__.py",
    # Values whose annotations are read while it runs (by the journal, `fields`, `match`): mypyc keeps no more of an
    # annotation than its outermost class, and takes a ClassVar for a field. docs/compiled.md has the pattern.
    "fairlead/core/model/conditions.py",
    "fairlead/core/model/constraints.py",
    "fairlead/core/model/decisions.py",
    "fairlead/core/model/events.py",
    "fairlead/core/model/properties.py",
    "fairlead/core/model/reason.py",
    "fairlead/core/model/reasons.py",
    "fairlead/core/model/specs.py",
    # It had a dataclass that is an abstract base class too, which mypyc cannot make; not tried without.
    "fairlead/policy/queue_choice/rules.py",
)
"""Globs of what they leave out all the same."""

OPTIMIZE = "2"
GROUP = "fairlead"
"""Names the library that all the extension modules share: `fairlead__mypyc`."""


class CompiledWheel(BuildHookInterface):  # type: ignore[type-arg]
    """The hook that hatchling calls."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and put what came of it into the wheel. Raises SystemExit with a sentence when it cannot."""
        if version == "editable":
            sys.exit("An editable install is plain: what is compiled would not follow the sources. Build a wheel.")
        root = Path(self.root)
        require_compiler()
        built = compile_modules(root, modules(root / "src"), root / "build" / "mypyc")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"].update({str(path): name for name, path in built.items()})


def modules(source: Path) -> list[Path]:
    """The files that are compiled, in one order. Raises SystemExit where a pattern or an exception names nothing."""
    found = {pattern: set(source.glob(pattern)) for pattern in (*COMPILED, *LEFT_PLAIN)}
    if empty := [pattern for pattern, paths in found.items() if not paths]:
        sys.exit(f"scripts/compiled_wheel.py names what is not there: {', '.join(empty)}")
    plain = set().union(*(found[pattern] for pattern in LEFT_PLAIN))
    return sorted(set().union(*(found[pattern] for pattern in COMPILED)) - plain)


def require_compiler() -> None:
    """Raise SystemExit with what to install where there is no C compiler, or no headers of this Python."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(command) is None:
        sys.exit(
            f"A compiled Fairlead needs a C compiler, and `{command}` was not found. On Debian and Ubuntu: "
            "apt-get install gcc libc6-dev. Or name another one: CC=clang. Without it everything works, uncompiled."
        )
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    if not header.exists():
        sys.exit(
            f"A compiled Fairlead needs the C headers of this Python, and {header} is not there. "
            "On Debian and Ubuntu: apt-get install python3-dev. Without them everything works, uncompiled."
        )


def compile_modules(root: Path, sources: list[Path], work: Path) -> dict[str, Path]:
    """Each extension module by its path in the wheel. `work` is made anew: nothing of an earlier build gets in."""
    # Imported here: hatchling asks what the hook needs before that is installed.
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class BuildInParallel(build_ext):
        """One library is made of a C file per module: several are compiled at a time."""

        def build_extension(self, extension: Any) -> None:
            def compiled(source: str) -> list[str]:
                return self.compiler.compile(
                    [source],
                    output_dir=self.build_temp,
                    include_dirs=extension.include_dirs,
                    extra_postargs=extension.extra_compile_args,
                )

            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for objects in pool.map(compiled, extension.sources):
                    extension.extra_objects += objects
            extension.sources = []
            super().build_extension(extension)

    shutil.rmtree(work, ignore_errors=True)
    cache, source = root / ".mypy_cache" / "mypyc", root / "src"
    os.environ["MYPYPATH"] = str(source)
    before = Path.cwd()
    os.chdir(root)
    try:
        extensions = mypycify(
            [f"--config-file={root / 'pyproject.toml'}", f"--cache-dir={cache}", *map(str, sources)],
            opt_level=OPTIMIZE,
            debug_level="0",
            multi_file=True,
            target_dir=str(work / "c"),
            group_name=GROUP,
        )
        build = BuildInParallel(Distribution({"name": "fairlead", "ext_modules": extensions}))
        build.build_lib, build.build_temp = str(work / "lib"), str(work / "objects")
        build.ensure_finalized()
        build.run()
    finally:
        os.chdir(before)
    lib = work / "lib"
    return {path.relative_to(lib).as_posix(): path for path in sorted(lib.rglob("*")) if path.is_file()}
