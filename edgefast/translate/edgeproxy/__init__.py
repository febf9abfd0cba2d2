"""EdgeProxy: the settings of fleets and their ports, access logs and tracing among them.

In: the EdgeProxies of a class and of a Gateway. Out: `Parameters`. Must never: ignore a field silently.
"""
