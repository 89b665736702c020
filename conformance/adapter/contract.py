"""The contract between the suite and what it tests: ``Support``, ``Framework``, ``Implementation``.

A plain function is enough. For ``attention``::

    def my_attention(query, key, value, *, mask=None, bias=None, causal=False, scale=None): ...

Its first three parameters receive arrays of the framework, (batch, heads, length, width); the names of the others say what
it can be asked for. What a signature cannot say is said by ``my_attention.conformance = Support(...)``. Keyword arguments
are passed only where the problem asks for them, so an implementation's own defaults are what is tested. Names by which released
libraries call the same, such as ``attn_mask`` or ``is_causal``, are known (``aliases`` in conformance/features):

* ``attention(query, key, value, *, mask, bias, causal, alignment, scale, key_lengths, …)``: ``mask`` boolean, True = attend,
  in the broadcast form of the problem; ``bias`` an array in the dtype of the query, added to the scaled scores; ``causal`` True;
  ``alignment`` "top-left" or "bottom-right" (without this parameter, ``causal`` is used only where the implementation's
  convention CON-ALIGNMENT is what the problem means); ``scale`` a float; ``key_lengths`` integers, one per batch row;
  ``key_padding_mask`` a boolean array (batch, key length), True = attend, in place of key lengths and of masks of keys alone;
  further ones in conformance/features, a module each.
* ``multi_head_attention(query, key, value, weights, *, num_heads, mask, causal, alignment, key_lengths, …)``: arrays
  (batch, length, width), ``weights`` a ``conformance.Weights`` that holds arrays of the framework; ``num_heads``
  is always passed, by name.
* ``sinusoidal_encoding(length, d_model, *, dtype, arrangement, frequencies, x)``: ``dtype`` the framework's own dtype object;
  ``arrangement`` "interleaved" or "concatenated"; ``frequencies`` "d" or "d/2-1" (convention CON-SINUSOID-FREQUENCIES); ``x``
  (batch, length, d_model), to which the encoding is to be added.

An adapter never sees expected values, and no check looks inside an adapter: it converts (``Framework``), calls (the
function), and reads back.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from conformance.adapter.parameters import Calling, calling, parameter_features
from conformance.numerics.dtypes import DTYPES
from conformance.numerics.profiles import FLUSHING, UNDECLARED
from conformance.operations import operation_of
from conformance.problem import LAYOUTS, MASK_FORMS
from conformance.problem.returned import OUTPUT
from conformance.renamed import profile_of_today

LENGTHS_DTYPES = ("int64", "int32")
CAUSALITY = ("asked", "always")  # causal where a problem asks for it, or whatever is asked
# Fields that a text cannot be.
COLLECTIONS = ("features", "lacks", "returns", "exclusive", "dtypes", "layouts", "mask_forms", "sizes")
AXES = ("bhld", "blhd")  # the orders of axes that an attention's own interface may have


@dataclass(frozen=True, kw_only=True)
class Support:
    """What an implementation declares. Everything has a default, so that a plain function needs none of it.

    * ``features``: None reads them from the function's parameters (conformance/adapter/parameters.py); a set replaces that.
      ``lacks`` says what it does not offer: implied features (``grouped-heads``, ``value-width``, …), and those for which it has
      no parameter (``mask``, ``causal``, …), so that their absence is a statement and no oversight.
    * ``returns``: what it returns, in order; several parts are a tuple. ``output`` is one of them; of attention and multi-head
      attention ``lse``, the log-sum-exp of each row, (batch, heads, Lq), and ``weights``, the softmax, (batch, heads, Lq, Lk),
      are judged beside it, whatever ``axes`` says; ``-`` stands for a part that is not judged (conformance/problem/returned.py).
    * ``parameters``: the function's own names for what the suite passes by name, such as ``{"mask": "attn_mask"}``, where they
      are neither the suite's nor well known. One name may stand for two, a mask and a bias: then one of them is passed.
    * ``dtypes``, ``layouts``, ``mask_forms``: what it accepts. ``axes``: one of AXES, the order of query, key, value
      and output in its own interface.
    * ``routes``: for a feature, other ways in which the suite may ask for it by rewriting the inputs, in order of preference:
      ``mask`` (folded into the boolean mask), ``bias`` (folded into the additive bias), ``repeat`` (kv heads repeated),
      ``zeros`` (a bias that is not there given as zeros), ``identity`` (as the output projection that is not there).
      ``native`` stands for the function's own parameter. Reports tell native from emulated.
    * ``exclusive``: features of which the implementation takes only one at a time; the suite folds the others into one.
    * ``profile``: the numerics profile (conformance/numerics/profiles.py) for all dtypes or by dtype; None: judged as unfused.
    * ``conventions``: declared answers by convention id, such as ``{"CON-EMPTY-ROW": "zeros"}``.
    * ``binds``: the function returns a callable without arguments, which does the computation: what it did before (building a
      module, loading weights) is preparation, and not timed.
    * ``framework``: whose arrays a plain function takes, ``numpy`` unless said.
    * ``widths``, ``multiples``, ``at_most``, ``square``, ``causal``: limits of shapes. The widths of a head that it takes; by
      name of a size (``query_length``, ``key_length``, ``batch``, ``heads``, …), the number of which it must be a multiple and
      its largest value; whether the lengths must be equal; ``causal="always"`` where it knows nothing else, so that no parameter
      says so. Problems are fitted to the limits where they can be (conformance/adapter/limits.py), the others are not asked.
    * ``flushes``: the dtypes whose subnormal numbers count as 0 throughout; it matters in float16, where they are ordinary data.
    * ``scale_dtype``: the dtype in which it holds the scale, given or its own, where that is less exact than the inputs': the
      expected values are then those of the scale rounded so.
    * ``distribution``: the name of the installed distribution that a wrapper in a file of your own calls, whose version records
      then carry; that of a function in a package is found by itself.
    * ``lengths_dtype``: ``int64`` or ``int32``, the dtype of ``key_lengths``.
    * ``declines``: types of exceptions that mean "not offered": the case counts as unsupported.
    * ``device``: ``cpu`` or ``cuda``. ``compiles``: True where each new shape costs a compilation, which keeps free shapes away.
      ``shapes``: a budget of shapes, for a compiler that takes long: problems are brought into a few sizes, and those beyond the
      so many shapes in which most of them are (sizes, dtypes, arguments) are not asked.
    * ``sizes``: sizes at which it takes another way (a block, a limit), where they cannot be read in its Python source: it is
      asked there, one below and one above in each dimension (ATT-OUT-048, ATT-HEAD-036, ATT-POS-022).
    """

    operation: str = "attention"
    features: frozenset[str] | None = None
    lacks: frozenset[str] = frozenset()
    returns: tuple[str, ...] = (OUTPUT,)
    parameters: Mapping[str, str] = field(default_factory=dict)
    dtypes: tuple[str, ...] = DTYPES
    layouts: tuple[str, ...] = tuple(layout for layout in LAYOUTS if layout != "reversed")
    mask_forms: tuple[str, ...] = MASK_FORMS
    axes: str = "bhld"
    routes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exclusive: frozenset[str] = frozenset()
    profile: str | Mapping[str, str] | None = None
    conventions: Mapping[str, str] = field(default_factory=dict)
    binds: bool = False
    framework: str | None = None
    widths: tuple[int, ...] = ()
    multiples: Mapping[str, int] = field(default_factory=dict)
    at_most: Mapping[str, int] = field(default_factory=dict)
    square: bool = False
    causal: str = "asked"
    declines: tuple[type[Exception], ...] = ()
    flushes: tuple[str, ...] = ()
    scale_dtype: str | None = None
    lengths_dtype: str = "int64"
    distribution: str | None = None
    device: str = "cpu"
    compiles: bool = False
    shapes: int | None = None
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "profile", profile_of_today(self.profile))

    def judged_by(self, dtype: str) -> str:
        """The profile by which outputs of ``dtype`` are judged, with what the suite adds where subnormal numbers are flushed."""
        return (self.profile_for(dtype) or UNDECLARED) + (FLUSHING if dtype in self.flushes else "")

    def profile_for(self, dtype: str) -> str | None:
        """The declared numerics profile for ``dtype``; None where nothing is declared."""
        if self.profile is None or isinstance(self.profile, str):
            return self.profile
        return self.profile.get(dtype)


class Framework(Protocol):
    """How arrays get in and out of one framework. Adding a framework is one file in ``implementations/`` with such a class."""

    name: str

    def missing(self, device: str) -> str | None:
        """Why this framework, or the device, cannot be used here, as a sentence; None if it can."""

    def version(self) -> str:
        """The framework's version, for records."""

    def from_numpy(self, array: np.ndarray, device: str) -> Any:
        """The array in the framework, the same numbers, dtype and, where the framework has strides, memory layout."""

    def to_numpy(self, array: Any) -> np.ndarray:
        """The framework's array as NumPy, waiting for it if need be. Raises TypeError if it is no array of the framework."""

    def dtype_of(self, name: str) -> Any:
        """The framework's dtype object for ``float32`` and the like."""

    def wait(self, result: Any) -> Any:
        """Returns ``result`` once it has been computed."""

    def shares_memory(self, first: Any, second: Any) -> bool:
        """Whether the two arrays overlap in memory; False in frameworks with immutable arrays."""


@runtime_checkable
class Differentiates(Protocol):
    """What a framework may have on top: gradients. Without it, its implementations are timed forward only."""

    def gradients(self, function: Callable[..., Any]) -> Callable[[tuple[Any, ...], Any], tuple[Any, tuple[Any, ...]]]:
        """A function of (arrays, cotangent) that gives the output of ``function(*arrays)`` and the gradients of the sum of
        output · cotangent with respect to the arrays."""


class Clock(Protocol):
    """How calls are measured on a device."""

    def seconds(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """The seconds that ``call`` takes, its asynchronous work included, and what it returns."""

    def peak_bytes(self, call: Callable[[], Any]) -> int | None:
        """How many bytes the memory of the process grows by while ``call`` runs, its result included; None where unknown."""


@runtime_checkable
class KeepsTime(Protocol):
    """What a framework may have on top: a clock for devices on which the host's does not tell."""

    def clock(self, device: str) -> Clock | None:
        """None where the host's clock will do."""


@runtime_checkable
class Compiles(Protocol):
    """What a framework may have on top: a compiler that may give up, so that calls are interpreted without a word."""

    def compilations(self) -> tuple[int, int]:
        """How many pieces of code were compiled in this process so far, and how many the compiler gave up.

        The first call sees to it that the compiler does not give up because of the number of shapes, or raises where it does.
        """

    def forget_compiled(self) -> None:
        """Begins anew: after an exception a compiler may leave code alone that it met on the way, for ever after."""


@runtime_checkable
class CompilesShapes(Protocol):
    """What a framework may have on top: operations that it compiles for each new shape, whoever calls them."""

    compiles_shapes: bool


@runtime_checkable
class KeepsState(Protocol):
    """What a framework may have on top: state for the whole process, such as a default dtype or a number of threads."""

    def kept(self) -> AbstractContextManager[None]:
        """At the end of which that state is what it was at the beginning."""


@runtime_checkable
class Overwrites(Protocol):
    """What a framework may have on top: arrays that can be written to, which a caller may use again for other contents."""

    def overwrite(self, array: Any, contents: np.ndarray) -> None:
        """Writes ``contents``, of the same shape and dtype, into the memory of ``array``, as a user of the framework would."""


@runtime_checkable
class Surrounds(Protocol):
    """What a framework may have on top: a setting that calls in a dtype need, and that is there for nobody else."""

    def surroundings(self, dtype: str) -> AbstractContextManager[None] | None:
        """In which a problem of that dtype is converted, called and read; None where there is nothing to set."""


@dataclass(frozen=True)
class Implementation:
    """What is under test: a function, what it declares, and the framework whose arrays it takes."""

    name: str
    function: Callable[..., Any]
    support: Support
    framework: Framework
    source: str = ""  # where it is defined, ``file:line``, for reports
    options: tuple[str, ...] = ()  # command-line options that were needed to make it, for reproduction commands
    when_named: bool = False  # it takes long, and runs only where it is named

    @property
    def operation(self) -> str:
        return self.support.operation

    @cached_property
    def calling(self) -> Calling:
        """How the function is called; raises UsageError where Python cannot tell its parameters."""
        return calling(self.function, self.operation, self.support.parameters, self.name)

    def has(self, parameter: str) -> bool:
        """Whether the function has a parameter for what the suite calls ``parameter``."""
        return parameter in self.calling.spelled

    def spelled(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by the suite's names as arguments by the function's own."""
        return {self.calling.spelled.get(name, name): value for name, value in named.items()}

    @cached_property
    def features(self) -> frozenset[str]:
        """The features that it offers natively."""
        if self.support.features is not None:
            named = self.support.features
        else:
            named = frozenset(feature for name, feature in parameter_features(self.operation).items() if self.has(name))
        always = {"causal"} if self.support.causal == "always" else set()
        return (named | always | operation_of(self.operation).implied) - self.support.lacks

    @cached_property
    def exclusive(self) -> frozenset[str]:
        """The features of which it takes one at a time: those declared so, and those that one parameter stands for."""
        table = parameter_features(self.operation)
        holders: dict[str, list[str]] = {}
        for ours, theirs in self.calling.spelled.items():
            if ours in table:
                holders.setdefault(theirs, []).append(table[ours])
        return self.support.exclusive.union(*(shared for shared in holders.values() if len(shared) > 1))

    def missing(self) -> str | None:
        """Why it cannot run here (no framework, no device), as a sentence; None if it can."""
        return self.framework.missing(self.support.device)
