"""Counters of rate limits: the shared memory of the workers, the store in use, and counters as rows."""
