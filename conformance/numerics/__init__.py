"""Numbers: float formats, numerics profiles, and random numbers that are the same bits everywhere."""
