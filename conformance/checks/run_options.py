"""The options of a run in one table, of which pytest's (``pytest --pyargs conformance.checks``) and our command's are made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Examples that Hypothesis draws per requirement; each gives several problems.
TIERS: dict[str, int] = {"quick": 1, "full": 12, "exhaustive": 240}
DEFAULT_SEED = 20170612  # the day on which "Attention Is All You Need" appeared
LARGEST_SEED = 2**32 - 1  # of a command that counts on from its seed: values are keyed by 64 bits
TIME_LIMITS: dict[str, float] = {"quick": 120.0, "full": 300.0, "exhaustive": 3600.0}


@dataclass(frozen=True)
class Effort:
    """How much is run: ``examples`` drawn by Hypothesis per requirement, ``free`` shapes too, and the random ``seed``."""

    examples: int
    free: bool
    seed: int


@dataclass(frozen=True, kw_only=True)
class RunOption:
    """One option. ``dest`` names it in pytest's options, among which "profile" and the like are taken."""

    flag: str
    help: str
    dest: str = ""
    metavar: str | None = None
    type: type = str
    choices: tuple[str, ...] = ()
    default: Any = None
    repeated: bool = False
    switch: bool = False

    @property
    def name(self) -> str:
        return self.dest or self.flag.removeprefix("--").replace("-", "_")

    def words(self, value: Any) -> Iterator[str]:
        """The command-line words that give ``value``; none where it says nothing."""
        if self.switch:
            yield from [self.flag] if value else []
        elif self.repeated:
            yield from (f"{self.flag}={one}" for one in value)
        elif value is not None:
            yield f"{self.flag}={value}"


IMPLEMENTATION = RunOption(
    flag="--implementation",
    dest="conformance_implementations",
    metavar="NAME",
    default=(),
    repeated=True,
    help="what to test: a built-in name or pattern, module:function, or file.py:function; "
    "may be repeated (default: all built-in)",
)

# What the signature of a plain function cannot say.
FUNCTION_OPTIONS = (
    RunOption(flag="--framework", help="the framework of a plain function's arrays: numpy (default), torch, jax"),
    RunOption(
        flag="--operation",
        help="what a plain function computes: attention (default), multi_head_attention, sinusoidal_encoding",
    ),
    RunOption(flag="--axes", help="the order of a plain function's axes: bhld (default), blhd"),
    RunOption(flag="--profile", dest="conformance_profile", help="the numerics profile by which a plain function is judged"),
    RunOption(flag="--dtypes", dest="conformance_dtypes", metavar="A,B", help="the dtypes that a plain function takes"),
    RunOption(flag="--lacks", dest="conformance_lacks", metavar="A,B", help="the features that a plain function does not offer"),
    RunOption(
        flag="--returns",
        dest="conformance_returns",
        metavar="A,B",
        help="the parts of a plain function's result: output, lse, weights, and - for what is not judged",
    ),
    RunOption(
        flag="--sizes",
        dest="conformance_sizes",
        metavar="N,M",
        help="sizes at which a plain function takes another way, such as its blocks, where its source cannot be read",
    ),
)


def function_settings(values: Mapping[str, Any]) -> dict[str, str | None]:
    """What FUNCTION_OPTIONS say, of option values by name, as ``registry.resolve`` takes it."""
    return {option.flag.removeprefix("--"): values[option.name] for option in FUNCTION_OPTIONS}


RUN_OPTIONS = (
    IMPLEMENTATION,
    *FUNCTION_OPTIONS,
    RunOption(flag="--tier", choices=tuple(TIERS), default="full", help="how much is run; quick is not a conformance result"),
    RunOption(flag="--seed", default=str(DEFAULT_SEED), help="seed of the random cases, or 'random'"),
    RunOption(flag="--max-examples", type=int, help="random examples per requirement, in place of the tier's number"),
    RunOption(flag="--skips", metavar="FILE", help="requirement ids or patterns to skip, one a line"),
    RunOption(flag="--expectations", metavar="PATH", help="known failures: a TOML file, or a folder with one per implementation"),
    RunOption(flag="--records", metavar="FILE", help="write the records of the run, JSON lines, to this file"),
    RunOption(flag="--reports", metavar="FOLDER", help="write records and tables to this folder"),
    RunOption(
        flag="--shard",
        dest="conformance_shard",
        metavar="K/N",
        help="run the K-th of N parts, on one machine of N; `attention-conformance merge` joins their records",
    ),
    RunOption(flag="--time-limit", type=float, metavar="SECONDS", help="per item, after which it is ended and counts as TIMEOUT"),
    RunOption(flag="--no-diagnosis", switch=True, default=False, help="do not look for the fault that explains the failures"),
    RunOption(
        flag="--unrun",
        dest="conformance_unrun",
        choices=("auto", "always", "never"),
        default="auto",
        help="list the lines of an implementation that no problem reached, after the checks; auto: of a function of your own "
        "that does not compile, unless -k is given",
    ),
    RunOption(
        flag="--timing",
        switch=True,
        default=False,
        help="measure the speed of what passed, after the checks; not with -k nor in the tier quick unless it is asked for",
    ),
)
