"""Expectations: known failures of implementations, as TOML, strict in both directions.

::

    [[expected]]
    requirement = "ATT-NUM-002"
    outcome = "WRONG_VALUE"
    reason = "0 · NaN behind the mask reaches the output"
    link = "https://…"                      # optional, as is everything below
    cases = ["0123456789ab"]                # digests of golden and designed cases, or "none"; all of them if left out
    dtypes = ["float16"]                    # all if left out
    random = false                          # random cases must pass all the same; if left out, they may fail too
    when = {platform = "linux", instruction_set = ["amx", "avx512"], torch = ">=2.5,<3"}

    [[expected]]
    convention = "CON-ALIGNMENT"
    answer = "other"                        # one that no interface should have; or mixed, raises, crashes, times-out
    reason = "…"                            # link and when as above
"""

from conformance.expectations.expectation import Expectation, ExpectedAnswer, file_stem
from conformance.expectations.judging import Expectations, ImplementationExpectations, Status, judge_timed
from conformance.expectations.load import builtin_expectations, is_skipped, load, load_skips, no_expectations

__all__ = [
    "Expectation",
    "Expectations",
    "ExpectedAnswer",
    "ImplementationExpectations",
    "Status",
    "builtin_expectations",
    "file_stem",
    "is_skipped",
    "judge_timed",
    "load",
    "load_skips",
    "no_expectations",
]  # fmt: skip
