"""attention-conformance: the conformance suite for Transformer attention.

From Python: ``judge(function, "ATT-MASK-009")`` gives what became of each problem of a requirement, ``judge(function, text)`` of
one problem. Everything else is the command's, ``attention-conformance``, and may change.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conformance.adapter import Support
    from conformance.errors import UsageError
    from conformance.interface import Judged, judge
    from conformance.judging.verdict import Outcome, Verdict
    from conformance.problem.inputs import Weights

__version__ = "0.1.0"
__all__ = ["Judged", "Outcome", "Support", "UsageError", "Verdict", "Weights", "judge"]
_FROM = {
    "Judged": "interface", "Outcome": "judging.verdict", "Support": "adapter", "UsageError": "errors",
    "Verdict": "judging.verdict", "Weights": "problem.inputs", "judge": "interface",
}  # fmt: skip

# The folders implementations/ and golden/ are packed within this package, so that they claim no name of their own. In a checkout
# they lie beside it.
_HERE = Path(__file__).resolve().parent
if not (_HERE / "implementations").is_dir():
    __path__.append(str(_HERE.parent))


def __getattr__(name: str) -> Any:
    """Imported when first used: commands that need little start quickly."""
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
