"""edgefast: a Kubernetes Gateway API gateway with a pure compiler and a compiled data plane.

In: Gateway API objects. Out: an immutable routing table and the proxy that serves from it.
This package never talks to a cluster and never imports `controller`.
"""

__version__ = "0.2.0"
