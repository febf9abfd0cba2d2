"""Health check: healthCheck of a BackendTrafficPolicy: the ejection of failing endpoints.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy
Gateway gives them.
Must never: hold the health of an endpoint; only what counts.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from edgefast.api.edge.active_health_check import ActiveHealthCheck
from edgefast.api.model.fields import Duration, Element

_Row = Annotated[int, Meta(ge=0, le=4294967295)]


class PassiveHealthCheck(Element, frozen=True, kw_only=True):
    """Ejects endpoints that fail repeatedly for some time (outlier detection).

    Failures in a row are counted for all routes and workers of a proxy together, and an ejection applies to all of them.
    """

    split_external_local_origin_errors: Annotated[
        bool,
        Meta(
            description="true: failed connects and connections have their own counter "
            "(`consecutiveLocalOriginFailures`). false: they count as a 502."
        ),
    ] = False
    interval: Annotated[
        Duration | None,
        Meta(
            description="Ejected endpoints return at the next multiple of this time, all together. "
            "Absent: each returns at its own time. Also the period of "
            "`failurePercentageThreshold`."
        ),
    ] = None
    consecutive_local_origin_failures: Annotated[
        _Row,
        Meta(
            description="Failed connects or connections in a row, with "
            "`splitExternalLocalOriginErrors`. 0: never."
        ),
    ] = 5
    consecutive_gateway_errors: Annotated[
        _Row, Meta(description="Answers with 502, 503 or 504 in a row. 0: never.")
    ] = 0
    consecutive_5xx_errors: Annotated[
        _Row, Meta(description="Answers with 5xx in a row. 0: never.")
    ] = field(default=5, name="consecutive5XxErrors")
    base_ejection_time: Annotated[
        Duration,
        Meta(
            description="Length of the first ejection. Each further one is longer by this time, up to "
            "5m or this value. At most 1h."
        ),
    ] = "30s"
    max_ejection_percent: Annotated[
        Annotated[int, Meta(ge=0, le=100)],
        Meta(
            description="Percentage of a backend's endpoints that can be ejected at the same time, "
            "rounded down."
        ),
    ] = 50
    failure_percentage_threshold: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(
            description="Percentage of failed answers (5xx) of an endpoint in an `interval` (default "
            "3s) at which it is ejected. Failed connections count unless they are split. "
            "It applies if at least five endpoints have 50 answers each from routes with "
            "such a policy. Absent: never."
        ),
    ] = None
    always_eject_one_endpoint: Annotated[
        bool,
        Meta(description="Allows the ejection of one endpoint even if the percentage rounds to 0."),
    ] = False


class HealthCheck(Element, frozen=True, kw_only=True):
    """Ejects endpoints that fail."""

    active: Annotated[ActiveHealthCheck | None, Meta(description="Active health checks.")] = None
    passive: Annotated[
        PassiveHealthCheck | None, Meta(description="Outlier detection by the answers to requests.")
    ] = None
    panic_threshold: Annotated[
        Annotated[int, Meta(ge=0, le=100)] | None,
        Meta(
            description="Percentage of a backend's endpoints. If fewer are healthy, all of them are "
            "used. 0: only if no endpoint is healthy."
        ),
    ] = None
