"""Two runs side by side: what fails now, what is mended, less accurate, slower, and what cannot be compared.

``compare`` is a pure function of two runs; ``rendering`` shows what it finds.
"""

from conformance.comparison.compare import compare
from conformance.comparison.model import Change, Comparison, Kind

__all__ = ["Change", "Comparison", "Kind", "compare"]
