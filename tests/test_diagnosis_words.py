"""Where nothing is explained, a diagnosis says where outputs are wrong in the words of the operation."""

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from conformance.adapter import Implementation, Support, registry
from conformance.diagnosis import diagnose
from conformance.faults.steps import compute
from conformance.harness.subject import Subject
from conformance.judging.judge import Judge
from conformance.problem import Problem, parse
from conformance.problem.inputs import MultiHeadInputs, SinusoidalInputs

OF_ATTENTION = re.compile(r"\b(heads?|quer(y|ies)|keys?|rows?|scores?|masks?)\b")


def lines_of(function: Callable, operation: str, failing: Sequence[str], passing: Sequence[str] = ()) -> tuple[str, ...]:
    conventions = {"CON-SINUSOID-ARRANGEMENT": "interleaved", "CON-SINUSOID-FREQUENCIES": "d"}
    support = Support(operation=operation, conventions=conventions if operation == "sinusoidal_encoding" else {})
    subject = Subject(Implementation(function.__name__, function, support, registry.frameworks()["numpy"]))
    problems: list[Problem] = [parse(text) for text in failing]
    return diagnose(subject, Judge(), dict.fromkeys(problems, ""), [parse(text) for text in passing], (), 60.0).lines


def table(length: int, width: int, dtype: type, arrangement: str = "interleaved") -> np.ndarray:
    return compute(SinusoidalInputs(length=length, width=width, dtype=np.dtype(dtype).name, arrangement=arrangement))


def wrong_cosines(length, d_model, *, dtype=np.float32, arrangement="interleaved", x=None):
    encoding = table(length, d_model, dtype, arrangement)
    encoding[:, 1::2] += 0.25
    return encoding


def wrong_at_the_last_frequency(length, d_model, *, dtype=np.float32, arrangement="interleaved", x=None):
    encoding = table(length, d_model, dtype, arrangement)
    last = (d_model - 2, d_model - 1) if arrangement == "interleaved" else (d_model // 2 - 1, d_model - 1)
    encoding[2:, last] += 0.25
    return encoding


def wrong_far_away(length, d_model, *, dtype=np.float32, arrangement="interleaved", x=None):
    encoding = table(length, d_model, dtype, arrangement)
    encoding[64:] += 0.25
    return encoding


def wrong_sum(length, d_model, *, dtype=np.float32, arrangement="interleaved", x=None):
    output = table(length, d_model, dtype, arrangement)
    if x is None:
        return output
    output = x + output
    output[-1] += 0.25
    return output


@pytest.mark.parametrize(
    ("function", "failing", "passing", "told"),
    [
        (
            wrong_cosines,
            "length=9 width=8 dtype=float32",
            "",
            ("position 0, column 1 (the cosine of frequency 0) of sinusoidal_encoding", "wrong are only cosines"),
        ),
        (
            wrong_at_the_last_frequency,
            "length=9 width=8 dtype=float32 arrangement=concatenated",
            "length=2 width=8 dtype=float32 arrangement=concatenated",
            (
                "position 2, column 3 (the sine of frequency 3)",
                "wrong are only positions from 2 on, only the last frequency",
                "only with 9 positions or more",
            ),
        ),
        (
            wrong_far_away,
            "length=500 width=8 dtype=float32 rows=0,9,99,499",
            "length=50 width=8 dtype=float32",
            ("position 99, column 0 (the sine of frequency 0)", "wrong are only positions from 99 on"),
        ),
        (
            wrong_sum,
            "length=9 width=8 dtype=float32 batch=2 values=gaussian.1#1",
            "length=9 width=8 dtype=float32",
            ("only where the encoding is added to x", "batch row 1, position 0, column 0", "wrong are only the last batch row"),
        ),
    ],
)
def test_an_encoding_is_wrong_at_positions_and_frequencies(function, failing, passing, told):
    (line,) = lines_of(
        function,
        "sinusoidal_encoding",
        [f"sinusoidal_encoding {failing}"],
        [f"sinusoidal_encoding {text}" for text in (passing,) if text],
    )
    for words in told:
        assert words in line
    prose = line.replace("batch row", "").replace("rows=", "")
    assert not OF_ATTENTION.search(prose), line


def test_an_encoding_that_is_wrong_throughout_is_told_without_words_of_attention():
    def wrong(length, d_model, *, dtype=np.float32, arrangement="interleaved", x=None):
        return table(length, d_model, dtype, arrangement) + np.dtype(dtype).type(3)

    (line,) = lines_of(wrong, "sinusoidal_encoding", ["sinusoidal_encoding length=9 width=8 dtype=float32"])
    assert "wrong elements are at all positions, in all columns; outputs are 3 more than what is expected" in line
    assert not OF_ATTENTION.search(line)


def test_the_output_of_multi_head_attention_has_no_heads():
    def wrong(query, key, value, weights, *, num_heads, mask=None, causal=False):
        inputs = MultiHeadInputs(query=query, key=key, value=value, weights=weights, num_heads=num_heads)
        return compute(inputs) + query.dtype.type(3)

    text = "multi_head_attention batch=2 heads=2 length=5 model=8 inner=8 dtype=float32 values=gaussian.1#1"
    (line,) = lines_of(wrong, "multi_head_attention", [f"{text} source=self projection=plain output=plain"])
    assert "wrong elements are in all rows and batch rows" in line
