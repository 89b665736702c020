"""Two runs side by side: what fails now, what is fixed, less accurate, slower, and what cannot be compared.

``compare`` is a pure function of two runs; ``rendering`` shows what it finds.
"""

from conformance.comparison.change import Change, ChangeKind, Comparison
from conformance.comparison.compare import compare

__all__ = ["Change", "ChangeKind", "Comparison", "compare"]
