"""The call: a problem is put to an implementation, and its outputs are read back. It judges nothing."""
