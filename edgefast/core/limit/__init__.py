"""Rate limits of rules: which counters a request asks for, the stores that count, their verdict.

Must never: let a request wait without a deadline.
"""
