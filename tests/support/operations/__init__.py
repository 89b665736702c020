"""A folder of operations that the suite does not have, put beside its own in tests/test_operations.py."""
