"""The sizes at which an implementation may change its way: those that it declares, and the numbers in its own code."""

from conformance.adapter import CompilesShapes, Implementation
from conformance.own_code import own_code
from conformance.specification.model import Facts
from conformance.specification.own_sizes import COMMON, LARGEST

SMALLEST = 2  # of numbers that may be sizes
MOST = 64  # numbers that are asked about


def own_sizes(implementation: Implementation) -> tuple[int, ...]:
    """The likeliest first: those declared, then those that stand in what is called, then those in what that calls."""
    found = own_code(implementation).numbers
    likeliest = sorted(found, key=lambda number: (number <= COMMON, found[number]))
    wanted = (number for number in (*implementation.support.sizes, *likeliest) if SMALLEST <= number <= LARGEST)
    return tuple(dict.fromkeys(wanted))[:MOST]


def is_dear(implementation: Implementation) -> bool:
    """Whether each new shape costs a compilation."""
    return implementation.support.compiles or isinstance(implementation.framework, CompilesShapes)


def facts_of(implementation: Implementation, thorough: bool) -> Facts:
    """What requirements may know of it. With a budget of shapes it is asked at no sizes of its own."""
    support = implementation.support
    return Facts(
        sizes=own_sizes(implementation) if support.shapes is None else (),
        features=implementation.features,
        dtypes=support.dtypes,
        dear=is_dear(implementation),
        thorough=thorough,
    )
