"""The commands: what ``attention-conformance …`` does, one module each."""
