"""Health checks: probes of endpoints, by one worker for all.

In: the checks of the table, endpoints. Out: the state of each endpoint in shared memory.
Must never: use the connections of requests, or eject an endpoint.
"""
