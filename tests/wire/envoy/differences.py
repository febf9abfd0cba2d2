"""Where answers differ from Envoy's on purpose: by case and question, what comes of it here and there, and why.

`what`: as the test has it: two statuses, or what differs of one, ours first. Must never name a difference without a reason that a user would accept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Difference(NamedTuple):
    """Of one question."""

    what: str
    why: str


def _all(names: Iterable[str], what: str, why: str) -> dict[str, Difference]:
    return dict.fromkeys(names, Difference(what, why))


_STRICT = "Values that differ say nothing: whom a backend would believe is not known."
_SCHEME = "Schemes are without case (RFC 9110 11.1); Envoy knows one spelling."
_CODING = "Names of codings are without case, and x-gzip is gzip (RFC 9110 8.4.1)."

DIFFERENCES: dict[str, dict[str, Difference]] = {
    "roles": {
        "POST /admin;x x-role: ops": Difference(
            "403 200",
            "Backends take what stands behind ; for a parameter of /admin: a rule about /admin holds.",
        ),
        **_all(
            ("GET / x-role: ops x-role: nobody", "GET / x-role: nobody x-role: ops"),
            "403 200",
            "Lines of one name are one list (RFC 9110 5.3), and that list is not `ops`; Envoy takes any line.",
        ),
        "GET / x_role: ops": Difference(
            "400 403", "Names with _ are refused at the door: backends may take them for x-role."
        ),
    },
    "tokens": {
        **_all(
            ("for others", "for nobody"),
            "www-authenticate: - | Bearer",
            "Another token of the same kind would not help: 403 has no challenge (RFC 6750 3.1 asks for one with 401).",
        ),
        "bearer": Difference("200 401", _SCHEME),
        "twice": Difference(
            "200 401", "The same token twice says the same; two that differ are 401 in both."
        ),
    },
    "passwords": {
        "GET / authorization: basic Ym9iOmI=": Difference("200 401", _SCHEME),
        "GET / authorization: Basic Ym9iOmI": Difference(
            "401 200", "That is no Base64 (RFC 4648 3.2)."
        ),
    },
    "keys": {
        **_all(
            (
                "GET /",
                "GET / x-api-key: ANN-1",
                "GET / x-api-key: ",
                "GET /?KEY=ann-1",
                "GET /?key=no",
                "GET / cookie: key=no",
                "GET /?key=ann-1 x-api-key: no",
            ),
            "www-authenticate: ApiKey | -",
            "A 401 has a challenge (RFC 9110 11.6.1).",
        ),
        "GET /?key=no x-api-key: ann-1": Difference("401 200", _STRICT),
    },
    "service": {
        "GET /a x-token: quiet x-user: root": Difference(
            "asked: - | x-user: root",
            "What a service may set nobody else says, also where it is silent.",
        ),
    },
    "encodings": {
        **_all(
            ("GET /size/2000 accept-encoding: GZIP", "GET /size/2000 accept-encoding: x-gzip"),
            "content-encoding: gzip | -",
            _CODING,
        ),
        "GET /size/2000 accept-encoding: *": Difference(
            "content-encoding: gzip | zstd",
            "Of equals the first of the policy; Envoy takes the last filter for *.",
        ),
        "GET /size/2000 accept-encoding: gzip;q=0, *": Difference(
            "content-encoding: br | zstd", "The same."
        ),
        "GET /size/2000 accept-encoding: gzip;q=1.5": Difference(
            "content-encoding: - | gzip",
            "That is no weight (RFC 9110 12.4.2): the part says nothing.",
        ),
        "GET /size/2000/etag/abc accept-encoding: gzip": Difference(
            'etag: W/"abc" | -',
            "A tag that is weakened still tells versions apart; Envoy takes it away.",
        ),
        "GET /size/2000/status/206 accept-encoding: gzip": Difference(
            "content-encoding: - | gzip; vary: - | accept-encoding",
            "A part of something that is encoded is not the encoded part (RFC 9110 14.4): ranges would not fit together.",
        ),
    },
}
