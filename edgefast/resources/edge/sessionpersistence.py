"""Session persistence of a BackendTrafficPolicy: that of the Gateway API, and how long a session may rest.

In: parts of BackendTrafficPolicy documents. Out: a Struct.
Source: GEP-1619; its releases before v1.6 had idleTimeout.
Must never: differ from what routes may say in anything else.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.resources.model.fields import Duration
from edgefast.resources.model.sessionpersistence import SessionPersistence


class TrafficSession(SessionPersistence, frozen=True, kw_only=True):
    """Keeps a client at the endpoint that served its first request."""

    idle_timeout: Annotated[
        Duration | None,
        Meta(
            description="Longest idle time of a session; each answer renews it. Absent: no limit."
        ),
    ] = None
