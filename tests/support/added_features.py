"""A feature more than the folder of features has, for the time of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from conformance import features
from conformance.features import Feature
from conformance.oracle.stages import stages
from conformance.problem import Problem
from conformance.problem.inputs import Arguments
from conformance.values import golden


@contextmanager
def added(feature: Feature) -> Iterator[None]:
    """With ``feature`` beside those that are found."""
    found = features._found()
    try:
        with patch.object(features, "_found", lambda: [*found, feature]):
            _forget()
            yield
    finally:
        _forget()


def _forget() -> None:
    """What was found in the folder, and what follows from it."""
    for kept in (features.every_feature, features.feature, features.features, features.in_order, features._unasked, stages):
        kept.cache_clear()
    for of_class in (Problem.fields, Problem._asks, Problem._of_features, Problem._owners, Arguments.defaults):
        of_class.__func__.cache_clear()
    golden.forget()
