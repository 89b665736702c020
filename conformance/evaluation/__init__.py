"""What the catalogue of faults proves: which requirement catches which fault, what other suites' rules catch, and that right
implementations pass. ``attention-conformance faults`` asks here."""
