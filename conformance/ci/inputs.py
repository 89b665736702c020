"""The inputs of the GitHub Action. They come as environment variables, so that no shell ever reads their text."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import UsageError, quoted
from conformance.system.user_files import demand_path

PREFIX = "CONFORMANCE_"
# Inputs that are options of `attention-conformance run` under the same name.
OPTIONS = ("framework", "operation", "axes", "profile", "tier", "seed", "expectations", "skips", "shard")
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class Inputs:
    """``words`` are those of ``attention-conformance run``; ``merge``: patterns of the records to merge in place of a run."""

    words: tuple[str, ...]
    reports: Path
    baseline: Path | None
    merge: tuple[str, ...]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Inputs":
        """Raises UsageError for an input that makes no sense by itself."""
        reports = _given(environment, "reports") or "reports"
        baseline = _given(environment, "baseline")
        for path in filter(None, (reports, baseline)):
            demand_path(path)
        return cls(
            words=(*_words(environment), f"--reports={reports}"),
            reports=Path(reports),
            baseline=Path(baseline) if baseline else None,
            merge=tuple(_given_lines(environment, "merge")),
        )


def _words(environment: Mapping[str, str]) -> list[str]:
    """Each as one word with its flag, so that no input can pass for another option."""
    words = [f"--implementation={name}" for name in _given_lines(environment, "implementation")]
    words += [f"--{name}={value}" for name in OPTIONS if (value := _given(environment, name))]
    keyword = _given(environment, "select")
    timing = _switch(environment, "timing")
    return [*words, "--timing" if timing else "--no-timing", *([f"-k{keyword}"] if keyword else [])]


def _given(environment: Mapping[str, str], name: str) -> str:
    """An input of one line, empty where it is not given."""
    lines = _given_lines(environment, name)
    if len(lines) > 1:
        raise UsageError(f"The input {name} has {len(lines)} lines: only implementation and merge may have several.")
    return lines[0] if lines else ""


def _given_lines(environment: Mapping[str, str], name: str) -> list[str]:
    text = environment.get(PREFIX + name.upper(), "")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _switch(environment: Mapping[str, str], name: str) -> bool:
    text = _given(environment, name) or "false"
    if text not in _WORDS:
        raise UsageError(f"The input {name} is {quoted(text)}: make it true or false.")
    return _WORDS[text]
