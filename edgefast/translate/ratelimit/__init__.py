"""Rate limits: those of a rule, what their counters are called, and where these are kept.

In: RateLimitFilters and the configuration. Out: ir.RateLimit, ir.RateLimitStore.
Must never: turn a mistake into no limit.
"""
