"""Counter stores of global rate limits.

In: checks (a counter's key, the number of requests, the limit) and `ir.RateLimitStore`.
Out: how many of them pass, the remaining quota and its reset time; every store returns the same
numbers. Stores differ in scope: the workers of one machine (memory), or every worker of every
replica (Redis).
Must never: depend on requests, or decide the effect of a failing store.
"""
