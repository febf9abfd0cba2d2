"""Rate limits: of a rule, the names of their counters, and the store of the counters.

In: RateLimitFilters and the configuration. Out: ir.RateLimit, ir.RateLimitStore.
Must never: turn a mistake into no limit.
"""
