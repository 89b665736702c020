"""What a variant of attention is: its argument, its field of a problem, what it hides, how functions are asked for it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool

from conformance.errors import Unsupported
from conformance.problem.fields import Field

OF_BOTH = ("attention", "multi_head_attention")
Conversion = Callable[[np.ndarray], Any]  # of an array of ours into one of a framework


class Feature:
    """A variant of attention, one module of this folder. ``name`` is its word where implementations say what they offer;
    ``argument`` how inputs name it, with ``default`` where it is not asked for; ``parameter`` the suite's name of it where a
    function is called, which released libraries call by the ``aliases``; ``ways`` those in which it is asked for, by preference,
    where an implementation does not say otherwise (conformance/routes.py). ``polarity``: the convention that says whether True
    means the opposite of what the suite means. ``field`` is None for what no problem asks for itself."""

    name: ClassVar[str]
    argument: ClassVar[str]
    default: ClassVar[Any] = None
    operations: ClassVar[tuple[str, ...]] = OF_BOTH
    field: ClassVar[Field | None] = None
    parameter: ClassVar[str] = ""  # the argument's name where nothing is said
    aliases: ClassVar[tuple[str, ...]] = ()
    ways: ClassVar[tuple[str, ...]] = ("native",)
    polarity: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        cls.parameter = cls.parameter or cls.argument

    @property
    def is_stored(self) -> bool:
        """Whether golden cases hold its arrays."""
        return self.field is not None and not self.field.parameter

    def given(self, problem: Any) -> Any:
        """The argument that ``problem`` asks for; its field, unless it is made into something else."""
        return self.default if self.field is None else getattr(problem, self.argument)

    @property
    def hides(self) -> bool:
        """Whether it is about which keys a query sees."""
        return type(self).visible is not Feature.visible

    def is_asked(self, inputs: Any) -> bool:
        """Whether ``inputs`` ask for it."""
        value = getattr(inputs, self.argument)
        return isinstance(value, np.ndarray) or value != self.default

    def visible(self, inputs: Any, start: int, stop: int) -> Bool[np.ndarray, "#b #hq #rows #lk"] | None:
        """Which keys the query rows ``start`` … ``stop`` − 1 may attend to as far as it is concerned; None for all."""
        return None

    def hide_exactly(self, visible: Bool[np.ndarray, "b hq lq lk"], inputs: Any) -> None:
        """The exact twin of ``visible``, written apart from it: hides in place what it hides."""

    def passed(self, inputs: Any, implementation: Any, to: Conversion) -> Iterator[tuple[str, Any]]:
        """The arguments of a call by the suite's names, where it is asked for."""
        value = getattr(inputs, self.argument)
        yield self.parameter, to(value) if isinstance(value, np.ndarray) else value

    def can(self, way: str, problem: Any, implementation: Any, conventions: Mapping[str, str]) -> bool:
        """Whether the implementation, which offers what ``way`` needs, can be asked for what ``problem`` says in that way."""
        return True

    def lacking(self, problem: Any, implementation: Any) -> Unsupported:
        """What is raised where there is no way."""
        return Unsupported(self.name, self.name)

    def decided_by(self, problem: Any, implementation: Any) -> tuple[str, ...]:
        """The conventions that must be known to say how it is asked for."""
        return ()
