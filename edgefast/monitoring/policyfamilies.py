"""What a proxy tells of policies: who was let in by whom. proxyfamilies.py has them on the page.

In: nothing. Out: `AUTHORISATION`, families of one cell each, those of faults and encodings among them; `DECIDED`, a row for each unit. Must never: tell anything that a client
or a service sends.
"""

from __future__ import annotations

from edgefast.monitoring.family import PREFIX, Family, count

__all__ = ["AUTHORISATION", "DECIDED"]

AUTHORISATION = (
    count("auth_calls", "Calls of authorization services.", "auth_calls"),
    count("auth_denied", "Requests that an authorization service denied.", "auth_denied"),
    count(
        "auth_errors",
        "Requests without a decision of the authorization service: they are denied, or pass if "
        "`failOpen` is set.",
        "auth_errors",
    ),
    count(
        "auth_cached",
        "Requests decided by a cached answer of an authorization service.",
        "auth_cached",
    ),
    count("faults_delayed", "Requests delayed by fault injection.", "faults_delayed"),
    count("faults_aborted", "Requests aborted by fault injection.", "faults_aborted"),
    count("compressed", "Answers encoded by a policy.", "compressed"),
    count(
        "compressed_in_bytes",
        "Bytes of encoded answers before encoding.",
        "compressed_in",
        "bytes",
    ),
    count(
        "compressed_out_bytes",
        "Bytes of encoded answers after encoding.",
        "compressed_out",
        "bytes",
    ),
    count("health_checks", "Active health checks of endpoints.", "health_checks"),
    count("health_checks_failed", "Active health checks that failed.", "health_checks_failed"),
    count(
        "health_checks_ill",
        "Endpoints that became unhealthy by active health checks.",
        "health_checks_ill",
    ),
    count(
        "zone_own",
        "Endpoints chosen in the proxy's zone by zone-aware load balancing.",
        "zone_own",
    ),
    count(
        "zone_other", "Endpoints chosen in other zones by zone-aware load balancing.", "zone_other"
    ),
)

DECIDED = Family(
    f"{PREFIX}policy_requests_total",
    "counter",
    "Requests decided by a unit of a policy. error: it is invalid, or its service failed. "
    "cached: allowed and denied requests that were decided without a call of its service.",
    ("policy", "unit", "verdict"),
    "",
)
