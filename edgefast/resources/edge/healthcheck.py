"""Which endpoints are left out because they fail, as a BackendTrafficPolicy says it.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway gives them.
Must never: say what an endpoint's health is; it only says what counts.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from edgefast.resources.edge.activehealthcheck import ActiveHealthCheck
from edgefast.resources.model.fields import Duration, Element

_Row = Annotated[int, Meta(ge=0, le=4294967295)]


class PassiveHealthCheck(Element, frozen=True, kw_only=True):
    """Endpoints that fail again and again are left out for a while (outlier detection).

    Failures in a row are counted for all routes and workers of a proxy together, and an endpoint that is out is out for all of them.
    """

    split_external_local_origin_errors: Annotated[
        bool,
        Meta(
            description="Whether connects and connections that fail count for themselves (`consecutiveLocalOriginFailures`), else "
            "as an answer of 502 would."
        ),
    ] = False
    interval: Annotated[
        Duration | None,
        Meta(
            description="Endpoints come back at the next multiple of it, so that they come back together. Without it each at its time. "
            "Answers of so long count for `failurePercentageThreshold`."
        ),
    ] = None
    consecutive_local_origin_failures: Annotated[
        _Row,
        Meta(
            description="So many connects or connections in a row, with `splitExternalLocalOriginErrors`; 0: never."
        ),
    ] = 5
    consecutive_gateway_errors: Annotated[
        _Row, Meta(description="So many answers of 502, 503 or 504 in a row; 0: never.")
    ] = 0
    consecutive_5xx_errors: Annotated[
        _Row, Meta(description="So many answers of 5xx in a row; 0: never.")
    ] = field(default=5, name="consecutive5XxErrors")
    base_ejection_time: Annotated[
        Duration,
        Meta(
            description="How long the first time; each time as much longer, 5m at most, or this if it is more. At most 1h."
        ),
    ] = "30s"
    max_ejection_percent: Annotated[
        Annotated[int, Meta(ge=0, le=100)],
        Meta(description="So much of a backend's endpoints may be out at once, rounded down."),
    ] = 50
    failure_percentage_threshold: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(
            description="So many percent of an endpoint's answers in an `interval` (3s without) that are 5xx, connects and connections that fail "
            "included unless they are split: it is left out at the interval's end. Only where five endpoints have had 50 answers each, of routes with "
            "such a policy. Without it none are too many."
        ),
    ] = None
    always_eject_one_endpoint: Annotated[
        bool, Meta(description="Whether one may, however few there are.")
    ] = False


class HealthCheck(Element, frozen=True, kw_only=True):
    """Which endpoints are left out."""

    active: Annotated[
        ActiveHealthCheck | None, Meta(description="By what they are asked, without any request.")
    ] = None
    passive: Annotated[PassiveHealthCheck | None, Meta(description="By their answers.")] = None
    panic_threshold: Annotated[
        Annotated[int, Meta(ge=0, le=100)] | None,
        Meta(
            description="Percentage of a backend's endpoints: when fewer are not out, all of them are used; 0: when none is."
        ),
    ] = None
