"""What a proxy counts of TLS with backends.

In: nothing. Out: `BACKEND_TLS`, a series for each cluster and reason. Must never: use a label that a backend or a client sends.
"""

from __future__ import annotations

from edgefast.monitoring.family import PREFIX, Family

__all__ = ["BACKEND_TLS"]

BACKEND_TLS = Family(
    f"{PREFIX}upstream_tls_failures_total",
    "counter",
    "Failed TLS handshakes with backends, by cluster and reason.",
    ("backend", "reason"),
    "",
)
