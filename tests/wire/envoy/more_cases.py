"""The cases of traffic and of filters; cases.py has those about who may enter."""

from __future__ import annotations

from typing import Any

from wire.envoy.asking import Ask
from wire.envoy.cases import (
    ADDRESSES,
    CLAIMS,
    KEYS_OF_CLIENTS,
    PASSWORDS,
    ROLES,
    SERVICE,
    TO_BACKEND,
    TOKENS,
    Case,
)
from wire.envoy.envoy_proxy import Object, typed


def _fault(**abort: Any) -> Object:
    return typed("envoy.filters.http.fault", "filters.http.fault.v3.HTTPFault", abort=abort)


FAULT = Case(
    "fault",
    (Ask("/"), Ask("/", (), "POST", b"12345"), Ask("/", (), "HEAD")),
    traffic={"faultInjection": {"abort": {"httpStatus": 418}}},
    filters=(_fault(http_status=418, percentage={"numerator": 100}),),
)
NO_FAULT = Case(
    "no-fault",
    (Ask("/"),),
    traffic={"faultInjection": {"abort": {"httpStatus": 418, "percentage": 0}}},
    filters=(_fault(http_status=418, percentage={"numerator": 0}),),
)
BODIES = Case(
    "bodies",
    tuple(
        Ask("/", (), "POST", b"x" * size, chunked)
        for size in (0, 1, 15, 16, 17, 100_000)
        for chunked in (False, True)
    ),
    traffic={"requestBuffer": {"limit": 16}},
    filters=(
        typed("envoy.filters.http.buffer", "filters.http.buffer.v3.Buffer", max_request_bytes=16),
    ),
)

_ACCEPTED = (
    None, "", "gzip", "GZIP", "br", "zstd", "deflate", "identity", "*", "gzip, br, zstd", "br;q=0.5, gzip;q=0.4", "gzip;q=0", "*;q=0", "gzip;q=0.001",
    "identity;q=0.5, gzip;q=0.4", "gzip;q=1.5", "x-gzip", "gzip;q=0, *", "br;q=0, gzip", "identity, *;q=0", "gzip,,br",
)  # fmt: skip


def _accepts(value: str | None) -> tuple[tuple[str, str], ...]:
    return (("accept-encoding", value),) if value is not None else ()


def _library(name: str, kind: str) -> Object:
    return typed(
        f"envoy.filters.http.compressor.{name}",
        "filters.http.compressor.v3.Compressor",
        compressor_library=typed(name, f"compression.{name}.compressor.v3.{kind}"),
        response_direction_config={
            "common_config": {
                "min_content_length": 1024,
                "content_type": ["text/plain", "application/json", "image/svg+xml"],
            }
        },
    )


ENCODINGS = Case(
    "encodings",
    tuple(Ask("/size/2000", _accepts(one)) for one in _ACCEPTED)
    + tuple(
        Ask(target, _accepts("gzip"), method)
        for method, target in (
            ("GET", "/size/1023"), ("GET", "/size/1024"), ("HEAD", "/size/2000"), ("GET", "/size/2000/type/image-png"), ("GET", "/size/2000/type/image-svg+xml"),
            ("GET", "/size/2000/etag/abc"), ("GET", "/size/2000/vary/origin"), ("GET", "/size/2000/vary/Accept-Encoding"), ("GET", "/size/2000/encoded/br"),
            ("GET", "/size/2000/control/no-transform"), ("GET", "/size/2000/status/500"), ("GET", "/size/2000/status/206"), ("GET", "/size/2000/status/404"),
        )
    ),
    traffic={"compressor": [{"type": "Gzip"}, {"type": "Brotli"}, {"type": "Zstd"}]},
    # What an encoder chooses among several filters is the order of the last: Envoy's last filter of equals is asked first.
    filters=(_library("zstd", "Zstd"), _library("brotli", "Brotli"), _library("gzip", "Gzip")),
)  # fmt: skip


def _override(*overrides: tuple[str, Object]) -> Object:
    """By status."""
    matchers = [
        {
            "predicate": {
                "single_predicate": {
                    "input": {
                        "name": "status",
                        "typed_config": {
                            "@type": "type.googleapis.com/envoy.type.matcher.v3.HttpResponseStatusCodeMatchInput"
                        },
                    },
                    "value_match": {"exact": status},
                }
            },
            "on_match": {
                "action": typed(
                    "local",
                    "http.custom_response.local_response_policy.v3.LocalResponsePolicy",
                    **policy,
                )
            },
        }
        for status, policy in overrides
    ]
    return typed(
        "envoy.filters.http.custom_response",
        "filters.http.custom_response.v3.CustomResponse",
        custom_response_matcher={"matcher_list": {"matchers": matchers}},
    )


OVERRIDES = Case(
    "overrides",
    tuple(
        Ask(f"/status/{status}/size/100", (), method)
        for status in (200, 404, 500, 502, 503, 204, 304)
        for method in ("GET", "POST", "HEAD")
    ),
    traffic={
        "responseOverride": [
            {
                "match": {"statusCodes": [{"value": 404}]},
                "response": {"contentType": "text/plain", "body": {"type": "Inline", "inline": "not here"}},
            },
            {
                "match": {"statusCodes": [{"value": 500}]},
                "response": {"statusCode": 503, "contentType": "text/plain", "body": {"type": "Inline", "inline": "later"}},
            },
        ]
    },
    filters=(
        _override(
            ("404", {"body": {"inline_string": "not here"}, "response_headers_to_add": [{"append_action": "OVERWRITE_IF_EXISTS_OR_ADD", "header": {"key": "content-type", "value": "text/plain"}}]}),
            ("500", {"status_code": 503, "body": {"inline_string": "later"}, "response_headers_to_add": [{"append_action": "OVERWRITE_IF_EXISTS_OR_ADD", "header": {"key": "content-type", "value": "text/plain"}}]}),
        ),
    ),
)  # fmt: skip


def _rewrite(pattern: str, substitution: str) -> tuple[Object, Object]:
    """Ours, and what Envoy's route says."""
    ours = {
        "urlRewrite": {
            "path": {
                "type": "ReplaceRegexMatch",
                "replaceRegexMatch": {"pattern": pattern, "substitution": substitution},
            }
        }
    }
    change = {"pattern": {"regex": pattern}, "substitution": substitution}
    return ours, {"route": {**TO_BACKEND["route"], "regex_rewrite": change}}  # fmt: skip


_PATHS = (
    "/", "/users/12/v1", "/users/12/v1?a=/users/3/v2", "/users/12/v1/", "/Users/12/v1", "/users/1%32/v1", "/users//12/v1", "/users/x/../12/v1", "/users/12/v1/users/13/v2",
    "/a/b/a/b", "/aaa", "/%C3%A4",
)  # fmt: skip


def _make_rewrite(name: str, pattern: str, substitution: str) -> Case:
    ours, theirs = _rewrite(pattern, substitution)
    return Case(name, tuple(Ask(one) for one in _PATHS), route_filter=ours, route=theirs)


REWRITES = (
    _make_rewrite("rewrite-groups", "^/users/([0-9]+)/(v[0-9]+)$", r"/\2/users/\1"),
    _make_rewrite("rewrite-all", "a", "b"),
    _make_rewrite("rewrite-prefix", "^/users", "/people"),
    _make_rewrite("rewrite-case", "(?i)^/users", "/people"),
    _make_rewrite("rewrite-none", "^/nothing", "/x"),
)
DIRECT = Case(
    "direct",
    tuple(Ask("/x?y", (), method) for method in ("GET", "HEAD", "POST", "DELETE")),
    route_filter={
        "directResponse": {
            "statusCode": 503,
            "contentType": "text/plain",
            "body": {"type": "Inline", "inline": "closed"},
        }
    },
    route={"direct_response": {"status": 503, "body": {"inline_string": "closed"}}},
)

CASES = (
    ADDRESSES,
    ROLES,
    TOKENS,
    CLAIMS,
    PASSWORDS,
    KEYS_OF_CLIENTS,
    SERVICE,
    FAULT,
    NO_FAULT,
    BODIES,
    ENCODINGS,
    OVERRIDES,
    *REWRITES,
    DIRECT,
)
