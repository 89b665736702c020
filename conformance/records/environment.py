"""Where a run takes place, for the header and for expectations that hold in some environments only."""

import os
import platform
import shlex
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from conformance.records.record_types import Environment
from conformance.system.world import given_arguments

PACKAGES = ("numpy", "ml_dtypes", "mpmath", "hypothesis", "pytest", "torch", "jax", "jaxlib")

# Sets of instructions between which results in 16 bit are known to differ, the best first: name, flag in /proc/cpuinfo.
_INSTRUCTION_SETS = (
    ("amx", "amx_tile"),
    ("avx512_bf16", "avx512_bf16"),
    ("avx512", "avx512f"),
    ("avx2", "avx2"),
    ("sse2", "sse2"),
    ("sve", "sve"),
    ("neon", "asimd"),
)


def current_environment(packages: Iterable[str] = PACKAGES) -> Environment:
    """This machine and interpreter; ``packages`` that are not installed are left out. Imports none of them."""
    cpu = _cpu_information()
    return Environment(
        python=platform.python_version(),
        platform=sys.platform,
        machine=platform.machine(),
        cpu=cpu.get("model name", "") or platform.processor() or "unknown",
        cores=len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1,
        memory=_memory(),
        instruction_set=_instruction_set(cpu),
        packages=_versions(packages),
    )


def command_line() -> str:
    """What the user typed, without the folder of the program."""
    own, *arguments = given_arguments()
    program = Path(own)
    name = "attention-conformance" if program.stem == "__main__" and program.parent.name == "conformance" else program.stem
    return shlex.join(["pytest" if name == "__main__" else name, *arguments])


def _cpu_information() -> dict[str, str]:
    """The fields of the first processor in /proc/cpuinfo; empty where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    fields = (line.partition(":") for line in text.strip().split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in fields}


def _instruction_set(cpu: dict[str, str]) -> str | None:
    flags = set((cpu.get("flags") or cpu.get("Features", "")).split())
    for name, flag in _INSTRUCTION_SETS:
        if flag in flags:
            return name
    return "neon" if platform.machine() in ("arm64", "aarch64") else None  # there it is never absent


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has none of it
        return None


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except (PackageNotFoundError, ValueError, OSError):  # the latter two: what cannot be the name of a package
            continue
    return found
