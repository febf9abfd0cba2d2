"""Rate limits of rules: the counters of a request, the stores that count, and the result.

Must never: let a request wait without a deadline.
"""
