"""``python -m conformance`` is ``attention-conformance``."""

from conformance.cli import main

if __name__ == "__main__":  # a process that the benchmark starts imports this module too
    main()
