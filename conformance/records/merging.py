"""The shards of a run, ``--shard 1/5`` to ``5/5``, joined: only all of them, of one version and set-up, are a run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from conformance.errors import UsageError
from conformance.records.reader import read_records
from conformance.records.record_types import Header
from conformance.records.run import Run, merge
from conformance.records.shard import Shard
from conformance.system.files import demand_other, write

# Must be equal: what was run, and which random cases, depend on it.
_EQUAL: dict[str, Callable[[Header], str]] = {
    "suite versions": lambda header: header.suite,
    "specification versions": lambda header: header.specification,
    "tiers": lambda header: header.tier,
    "seeds": lambda header: str(header.seed),
    "selections (-k)": lambda header: repr(header.selection) if header.selection else "none",
    "versions of Python": lambda header: ".".join(header.environment.python.split(".")[:2]),
    "versions of NumPy": lambda header: header.environment.packages.get("numpy", "none"),
    "versions of Hypothesis": lambda header: header.environment.packages.get("hypothesis", "none"),
    "implementations": lambda header: ", ".join(sorted(entry.name for entry in header.implementations)),
}


def merge_files(files: Sequence[Path], out: Path) -> Run:
    """The run whose shards the files hold, one or several each; written to ``out``, a record file as good as any other.

    Raises UsageError for a file that cannot be read or written, and where the shards are not those of one run, each of them once.
    """
    demand_other(out, files)
    runs = [(str(file), read_records(file)) for file in files]
    run = merge_shards(runs)
    try:
        content = b"".join(Path(file).read_bytes().rstrip(b"\n") + b"\n" for file, _ in sorted(runs, key=_number))
        write(out, content)
    except OSError as error:
        raise UsageError(f"The merged records cannot be written to {out}: {error.strerror}.") from None
    return run


def merge_shards(runs: Sequence[tuple[str, Run]]) -> Run:
    """The whole of the runs, given with the names of their files. Raises UsageError unless they are the shards of one run."""
    headers = [(name, header) for name, run in runs for header in run.headers]
    for what, said in _EQUAL.items():
        _demand_one(what, ((name, said(header)) for name, header in headers))
    _demand_complete([(name, header.shard) for name, header in headers])
    return merge(run for _, run in sorted(runs, key=_number))


def _number(named: tuple[str, Run]) -> int:
    """Which shard a file begins with: the first one alone has timings, and its machine stands first."""
    return Shard.parse(named[1].header.shard).number


def _demand_one(what: str, values: Iterable[tuple[str, str]]) -> None:
    (first_file, first), *others = values
    for file, value in others:
        if value != first:
            raise UsageError(
                f"These are no shards of one run, their {what} differ: {first} in {first_file}, {value} in {file}. Run "
                "all shards with the same version, options and implementations."
            )


def _demand_complete(shards: Sequence[tuple[str, str]]) -> None:
    """Each of 1/n … n/n once; a whole run is no shard."""
    for file, text in shards:
        if not text:
            raise UsageError(f"{file} is no shard: its run was not started with --shard, and has nothing to be merged with.")
    _demand_one("numbers of shards", ((file, str(Shard.parse(text).count)) for file, text in shards))
    found: dict[int, str] = {}
    for file, text in shards:
        number = Shard.parse(text).number
        if number in found:
            raise UsageError(f"The shard {text} comes twice, in {found[number]} and in {file}: name each shard once.")
        found[number] = file
    _demand_all(found, Shard.parse(shards[0][1]).count)


def _demand_all(found: Mapping[int, str], count: int) -> None:
    missing = [f"{number}/{count}" for number in range(1, count + 1) if number not in found]
    if missing:
        raise UsageError(f"The shards are not complete, {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing.")
