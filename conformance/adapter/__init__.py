"""What an implementation is: the contract, its parameters, limits and routes, and how it is found, loaded and known.

The contract is what others import from here; its docstring says how functions are called.
"""

from conformance.adapter.contract import (
    Clock,
    Compiles,
    CompilesShapes,
    Differentiates,
    Framework,
    Implementation,
    KeepsState,
    KeepsTime,
    Overwrites,
    Support,
    Surrounds,
)

__all__ = [
    "Clock", "Compiles", "CompilesShapes", "Differentiates", "Framework", "Implementation", "KeepsState", "KeepsTime",
    "Overwrites", "Support", "Surrounds",
]  # fmt: skip
