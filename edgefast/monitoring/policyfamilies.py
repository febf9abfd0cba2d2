"""What a proxy tells of policies: who was let in by whom. proxyfamilies.py has them on the page.

In: nothing. Out: `AUTHORISATION`, families of one cell each, those of faults and encodings among them; `DECIDED`, a row for each unit. Must never: tell anything that a client
or a service sends.
"""

from __future__ import annotations

from edgefast.monitoring.family import PREFIX, Family, count

__all__ = ["AUTHORISATION", "DECIDED"]

AUTHORISATION = (
    count("auth_calls", "Requests shown to authorisation services.", "auth_calls"),
    count("auth_denied", "Requests that such a service has refused.", "auth_denied"),
    count(
        "auth_errors",
        "Requests that such a service did not judge: they are refused, or pass where the policy says so.",
        "auth_errors",
    ),
    count("auth_cached", "Requests judged by what a service said before.", "auth_cached"),
    count("faults_delayed", "Requests that a policy made wait on purpose.", "faults_delayed"),
    count("faults_aborted", "Requests that a policy refused on purpose.", "faults_aborted"),
    count("compressed", "Answers that a policy has had encoded.", "compressed"),
    count(
        "compressed_in_bytes",
        "Bytes of such answers as backends sent them.",
        "compressed_in",
        "bytes",
    ),
    count("compressed_out_bytes", "The same as clients got them.", "compressed_out", "bytes"),
    count("health_checks", "Endpoints that were asked how they are.", "health_checks"),
    count("health_checks_failed", "Of these, no good answer came.", "health_checks_failed"),
    count(
        "health_checks_ill",
        "Endpoints that got no requests any more for that.",
        "health_checks_ill",
    ),
    count(
        "zone_own",
        "Endpoints that were chosen of the proxy's own zone, where zones count.",
        "zone_own",
    ),
    count("zone_other", "Endpoints of other zones that were chosen there.", "zone_other"),
)

DECIDED = Family(
    f"{PREFIX}policy_requests_total",
    "counter",
    "Requests that a unit of a policy decided about; error: it is broken, or its service failed; cached: of those allowed "
    "and denied, without asking its service.",
    ("policy", "unit", "verdict"),
    "",
)
