"""Virtual hosts: the rules of all routes on one hostname of a listener, in order of precedence.

In: the outcomes of routes. Out: ir.VirtualHosts, and which of their matches never take a request.
Must never: change the outcome of a route.
"""
