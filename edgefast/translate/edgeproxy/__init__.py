"""EdgeProxy: the settings of fleets and their ports, including access logs and tracing.

In: the EdgeProxies of a class and of a Gateway. Out: `Parameters`. Must never: ignore a field
silently.
"""
