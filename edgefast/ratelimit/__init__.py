"""Counter stores of global rate limits: who counts, and where.

In: checks (a counter's key, how many requests, the limit) and `ir.RateLimitStore`. Out: how many of them pass, what is left
and until when; the same numbers from every store. Stores differ in reach: the workers of one machine (memory), or every
worker of every replica (Redis). Must never: know what a request is, or decide what happens when a store fails.
"""
