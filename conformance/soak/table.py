"""What a soak test found, as a table and as sentences."""

from tabulate import tabulate

from conformance.soak.run import Extreme, Key, Soaked

SLACK = 0.05  # a budget that nothing correct comes nearer to than this is suspected of letting faults through


def render(soaked: Soaked) -> str:
    """The table, the problem of each largest r, and whatever is wrong or suspicious."""
    rows = [
        (*key, extreme.distribution.count, f"{extreme.distribution.median:.3f}", f"{extreme.distribution.max:.3f}")
        for key, extreme in sorted(soaked.extremes.items())
    ]
    table = tabulate(rows, ("implementation", "dtype", "profile", "judged", "median r", "largest r"), disable_numparse=True)
    problems = [_worst(key, extreme) for key, extreme in sorted(soaked.extremes.items())]
    missing = [f"{name} did not run: {reason}" for name, reason in sorted(soaked.missing.items())]
    return "\n".join([table, "", "Problems with the largest r:", *problems, "", *missing, *slack(soaked), *verdict(soaked)])


def _worst(key: Key, extreme: Extreme) -> str:
    lines = [f"{'/'.join(key)}: r = {extreme.distribution.max:.3g}", extreme.problem, extreme.message]
    return "\n  ".join(line for line in lines if line)


def slack(soaked: Soaked) -> list[str]:
    """A warning for each dtype and profile in which no implementation comes near the budget."""
    largest: dict[tuple[str, str], float] = {}
    for (_, dtype, profile), extreme in soaked.extremes.items():
        largest[dtype, profile] = max(largest.get((dtype, profile), 0.0), extreme.distribution.max)
    return [
        f"Warning: the budget of {dtype} under {profile} has slack: the largest r is {r:.3g}."
        for (dtype, profile), r in sorted(largest.items())
        if r < SLACK
    ]


def verdict(soaked: Soaked) -> list[str]:
    beyond = soaked.beyond
    if not soaked.extremes:
        return [f"{soaked.problems:,} problems: none could be judged."]
    if not beyond:
        return [f"{soaked.problems:,} problems: every r is within 1."]
    return [f"{soaked.problems:,} problems: beyond the budget in {', '.join('/'.join(key) for key in sorted(beyond))}."]
