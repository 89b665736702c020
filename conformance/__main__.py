"""``python -m conformance`` is ``attention-conformance``."""

from conformance.cli import main

main()
