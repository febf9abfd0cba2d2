"""Parts that proxy and controller share: logging, addresses and small HTTP servers.

Must never: depend on the purpose of the process.
"""
