"""Requirements and conventions as data: what a specification entry consists of."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.problem import Problem
from conformance.problem.returned import LSE, OUTPUT, WEIGHTS
from conformance.specification.draw import AnyDraw
from conformance.specification.observing import ANYWHERE, RAISES, Ask, Observation, Places, Question

AREAS: dict[str, str] = {
    "OUT": "Outputs",
    "SCALE": "Scaling",
    "MASK": "Masking",
    "HEAD": "Heads",
    "NUM": "Special numbers",
    "POS": "Positional encoding",
}

# How a requirement's problems are checked: the procedures of conformance/checks/procedures.py.
CHECKS: dict[str, str] = {
    "values": "each problem's output is within its budget",
    "beyond": "each problem's output is within its budget, or not finite where the numbers are beyond what algorithms hold",
    "exact": "each problem's output is the number that is expected, to the last bit",
    "shape": "each problem's output is an array of the expected shape; neither its dtype nor its values are judged",
    "dtype": "each problem's output is an array of the expected dtype; neither its shape nor its values are judged",
    "form": "each problem's output is an array of the expected shape and dtype; its values are not judged",
    "repeat": "the same call several times gives outputs that agree within the budget, right or wrong",
    "stale": "a call, one with other values in the same shapes, some in the same memory with one element changed, the first "
    "again: each output belongs to its own inputs",
    "sequence": "a call again and again, between calls in other shapes and dtypes and with other arguments: each output is "
    "right when it comes and at the end, and inputs stay as they were",
    "untouched": "the inputs read the same after the call as before, as they must after every call; the output is not judged",
    "unaliased": "the output shares no memory with an input; its values are not judged",
    "unbiased": "each problem's output is within its budget, and its errors have no part that another scale would explain",
    "routes": "every way in which the implementation can be asked gives an output within the budget",
    "empty-rows": "fully masked rows give one of the known answers, where the other rows are right",
    "bias-dtype": "a bias in float32 beside 16-bit inputs: the output is within its budget, with the bias as it is or rounded to "
    "their dtype, or the call raises",
    "lengths-dtype": "key lengths in the other one of int32 and int64: the output is within its budget, or the call raises",
    LSE: "each problem's log-sum-exp, of the expected shape and dtype, is within its budget; the output is not judged",
    WEIGHTS: "each problem's weights, of the expected shape and dtype, are within their budget; the output is not judged",
}

# Those that hold outputs against the truth; of the others, an output that passes may be any.
VALUE_CHECKS: frozenset[str] = frozenset({"values", "beyond", "exact", "stale", "sequence", "unbiased", "routes"})

# Null models (conformance/cases/admissible.py), and what each does: outputs that a case must tell from the truth.
NULLS: dict[str, str] = {
    "zeros": "gives zeros",
    "mean": "gives all visible keys equal weight",
    "argmax": "gives the visible key with the largest score all the weight",
    "uniform": "gives all keys equal weight, hidden ones too",
    "heads": "gives each head the output of its neighbour",
    "position 0": "gives every position the encoding of position 0",
    "shifted": "counts positions from 1",
    "swapped": "has sine and cosine exchanged",
}

_ID = re.compile(r"ATT-(?P<area>[A-Z]+)-\d{3}")


def nothing() -> Iterable[Problem]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a requirement may know of an implementation, to choose problems for it: the ``sizes`` that stand in its source or that
    it declares, the likeliest first, the ``features`` that it offers, its ``dtypes``, and whether new shapes are ``dear``, since
    it compiles each. ``thorough``: more is asked than in the quick tier."""

    sizes: tuple[int, ...]
    features: frozenset[str]
    dtypes: tuple[str, ...]
    dear: bool
    thorough: bool


@dataclass(frozen=True)
class Blind:
    """The NULLS that no designed problem of a requirement tells from the truth where outputs of ``dtype`` are held against the
    budgets of ``profiles``: their roundings are larger than what the problems are about."""

    dtype: str
    profiles: tuple[str, ...]
    nulls: tuple[str, ...]

    def __post_init__(self) -> None:
        assert self.profiles and self.nulls and set(self.nulls) <= set(NULLS), self


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One testable sentence.

    ``id`` is permanent. ``designed`` returns the problems made by hand for it, in all dtypes that they are for; ``adapted`` those
    that depend on the implementation, where there are any, of which ``adapts_to`` says in words on what; ``random`` says what
    Hypothesis may draw for it. ``few`` returns those of the designed ones that are put in the quick tier where each shape costs
    a compilation, or ``few_of`` says of each whether it is one of them; without either all are. ``cannot_tell`` names the NULLS
    that its cases cannot tell from the truth, by their very purpose, and ``exempt`` says why (V = 1, one key …); empty where they
    must. ``blind`` names those that are lost besides, in which dtypes and under which coarse profiles.
    """

    id: str
    sentence: str
    rationale: str
    source: str
    operation: str = "attention"
    check: str = "values"
    designed: Callable[[], Iterable[Problem]] = nothing
    adapted: Callable[[Facts], Iterable[Problem]] | None = None
    adapts_to: str = ""
    few: Callable[[], Iterable[Problem]] | None = None
    few_of: Callable[[Any], bool] | None = None
    random: AnyDraw | None = None
    exempt: str = ""
    cannot_tell: tuple[str, ...] = ()
    blind: tuple[Blind, ...] = ()

    def __post_init__(self) -> None:
        match = _ID.fullmatch(self.id)
        assert match and match["area"] in AREAS, self.id
        if self.few_of is not None:
            of, designed = self.few_of, self.designed
            object.__setattr__(self, "few", lambda: [problem for problem in designed() if of(problem)])
        assert self.check in CHECKS, self.check
        assert bool(self.exempt) == bool(self.cannot_tell), self.id
        assert bool(self.adapted) == bool(self.adapts_to), self.id
        assert set(self.cannot_tell) <= set(NULLS), self.id
        assert self.judges_values or not (self.cannot_tell or self.blind), self.id
        assert all(set(self.cannot_tell).isdisjoint(lost.nulls) for lost in self.blind), self.id

    @property
    def judges_values(self) -> bool:
        """Whether what passes is right, and not only of the expected form, repeatable or the like."""
        return self.check in VALUE_CHECKS

    def blind_to(self, dtype: str, profile: str) -> frozenset[str]:
        """The NULLS, beside those of ``cannot_tell``, that none of its designed problems in ``dtype`` tells under ``profile``."""
        lost = (blind.nulls for blind in self.blind if blind.dtype == dtype and profile in blind.profiles)
        return frozenset().union(*lost)

    @property
    def area(self) -> str:
        return self.id.split("-")[1]

    @property
    def output(self) -> str:
        """Which output it is about: asked of implementations that return it."""
        return self.check if self.check in (LSE, WEIGHTS) else OUTPUT

    def is_asked_of(self, operation: str, returns: Iterable[str]) -> bool:
        """Whether it concerns an implementation of ``operation`` with those outputs."""
        return self.operation == operation and self.output in returns


@dataclass(frozen=True, kw_only=True)
class Convention:
    """A point on which released APIs differ: observed, and compared with what is declared.

    ``answers`` are all that are told apart, with what each means. Those in ``legitimate`` are how interfaces may differ; another
    one is wrong wherever the feature is offered, and so is one that is not the same everywhere. ``questions`` says, for each
    operation of which it is asked, how. ``native``: the question is what the implementation's own parameters mean, so that
    ``ask`` does not rewrite the inputs to get round a lack of them. ``by``: the way (conformance/adapter/routes.py) by which
    alone it is asked, where it is about that way. ``otherwise`` says what the suite does all the same where the answer is not
    legitimate. ``output``: which of the outputs answers it.
    """

    id: str
    question: str
    source: str
    answers: dict[str, str]
    legitimate: frozenset[str]
    questions: Mapping[str, Question]
    native: bool = False
    by: str = ""
    otherwise: str = ""
    output: str = OUTPUT

    def __post_init__(self) -> None:
        assert self.legitimate and self.legitimate <= set(self.answers), self.id

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations of which the question is asked."""
        return tuple(self.questions)

    def is_asked_of(self, operation: str, returns: Iterable[str]) -> bool:
        """Whether it concerns an implementation of ``operation`` with those outputs."""
        return operation in self.operations and self.output in returns

    @property
    def known_answers(self) -> tuple[str, ...]:
        """All that can be observed."""
        return (*self.answers, *ANYWHERE)

    def meaning(self, answer: str) -> str:
        return self.answers.get(answer) or ANYWHERE[answer]

    def observe(self, ask: Ask, operation: str, *, places: Places = "all") -> Observation:
        """What the outputs of an implementation of ``operation`` answer. Raises Unsupported where no form of the question can be
        asked."""
        return self.questions[operation].observe(ask, raising="refused" if "refused" in self.answers else RAISES, places=places)
