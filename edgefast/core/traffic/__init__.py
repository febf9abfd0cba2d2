"""Traffic policies of a request: timeouts, body size, endpoint choice, sessions, overrides, compression.

In: units of policies from the table. Out: the effective settings of a rule, applied to its requests.
Must never: decide who may enter.
"""
