"""What is done to the suite on purpose: damaged files and hostile implementations, made by the thousand, each with what must come
of it. ``python -m tests.attacks.files`` and ``python -m tests.attacks.adapters`` run all of them."""
