"""EdgeProxy: the settings of a fleet and its ports.

In: the EdgeProxy of a GatewayClass and that of a Gateway; the Gateway's wins field by field. Out:
ir.HttpSettings (access_log.py has the log). Fields that the data plane does not serve yet are
refused by name. Ceilings of the compiled core apply, with a problem each.
Source: spec section 2 (EdgeProxy); defaults in `api/edge/edgeproxy_defaults.py`.
Must never: ignore a field silently.
"""

from __future__ import annotations

from typing import Literal, TypeVar, get_args

from edgefast import ir
from edgefast.api.edge.edgeproxy import (
    MAX_HEADERS,
    EdgeProxy,
    EdgeProxySpec,
    ProxyAccessLog,
    ProxyHTTP,
)
from edgefast.api.edge.edgeproxy_defaults import merge_proxy_specs
from edgefast.api.edge.edgeproxy_headers import (
    ClientCertDetail,
    ForwardedClientCertificate,
    ForwardedHeader,
    ProxyHeaders,
)
from edgefast.api.edge.edgeproxy_protocols import ProxyClientAddress, ProxyGRPC, ProxyGRPCRetry
from edgefast.api.kinds import EDGE_GROUP, ref_of
from edgefast.api.model.units import parse_duration, parse_size
from edgefast.diagnostics.problem import supported_text
from edgefast.translate.edgeproxy.access_log import LOG_FIELDS, LOG_FORMATS, check_access_log
from edgefast.translate.edgeproxy.protocols import (
    GRPC_CODES,
    PROXY_PROTOCOLS,
    check_http2,
    check_stream,
    translate_grpc,
    translate_http2,
)
from edgefast.translate.edgeproxy.tracing import PROTOCOLS, check_tracing
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import warn_unserved

#: EF_MAX_HEAD in csrc/limits.h, the size of a buffer.
MAX_HEAD = 256 * 1024
#: REPLAY_LIMIT in core/consts.pxi: what is held of a body before anybody takes it.
MAX_BODY_START = 64 * 1024
MAX_MIRROR_BUFFER = 16 * 1024 * 1024  # half of what the copies of a worker hold together
#: What a controller makes a fleet of, so `edgefast run` has no use for it.
_OF_FLEETS = ("workers", "deployment", "service", "hpa", "pdb", "shutdown")
# Words, each list with the strictest first: it is used for a word that only a newer CRD knows.
_UNDERSCORES: dict[str, Literal["Reject", "Allow", "Drop"]] = {
    "RejectRequest": "Reject",
    "DropHeader": "Drop",
    "Allow": "Allow",
}
_SLASHES: tuple[Literal["Reject", "UnescapeAndRedirect", "KeepUnchanged"], ...] = (
    "Reject",
    "UnescapeAndRedirect",
    "KeepUnchanged",
)
_PARAMETERS: tuple[Literal["reject", "keep", "strip"], ...] = ("reject", "keep", "strip")
_RAW: tuple[Literal["Reject", "Allow"], ...] = ("Reject", "Allow")
_PROXY_PROTOCOL: tuple[Literal["required", "optional", "off"], ...] = (
    "required",
    "optional",
    "off",
)

_FORWARDED: tuple[ForwardedHeader, ...] = get_args(ForwardedHeader)
_FORWARDED_FOR: tuple[Literal["Append", "Overwrite"], ...] = ("Append", "Overwrite")
_CLIENT_CERT: dict[str, Literal["sanitize", "forward", "append", "set", "always"]] = {
    "Sanitize": "sanitize",
    "ForwardOnly": "forward",
    "AppendForward": "append",
    "SanitizeSet": "set",
    "AlwaysForwardOnly": "always",
}
_CERT_DETAILS: tuple[ClientCertDetail, ...] = get_args(ClientCertDetail)
_REQUEST_IDS: dict[str, Literal["generate", "internal", "preserve"]] = {
    "Generate": "generate",
    "PreserveInternal": "internal",
    "PreserveOrGenerate": "preserve",
}

_Word = TypeVar("_Word", bound=str)


def resolve_parameters(
    group: str, kind: str, namespace: str, name: str, proxy: EdgeProxy | None
) -> str:
    """Return why a parametersRef is invalid, "" when it names an EdgeProxy that exists."""
    if (group, kind) != (EDGE_GROUP, "EdgeProxy"):
        return f'"{kind}" of group "{group}" (supported: EdgeProxy of group {EDGE_GROUP})'
    return "" if proxy else f"EdgeProxy {namespace}/{name} not found"


def check_edge_proxy(
    proxy: EdgeProxy,
    *,
    of_gateway: bool,
    standalone: bool,
    tracing: bool = True,
    allowed: tuple[str, ...] = (),
    class_spec: EdgeProxySpec | None = None,
) -> Report:
    """Report the fields of an EdgeProxy that are not served; the others are. `class_spec`: is merged with a Gateway's EdgeProxy."""
    report, spec = Report(ref_of(proxy)), proxy.spec
    if spec.tracing is not None:
        check_tracing(spec.tracing, report, available=tracing, allowed=allowed)
    if spec.access_log is not None:
        check_access_log(spec.access_log, report)
    for field in _OF_FLEETS:
        if standalone and getattr(spec, field) is not None:
            message = (
                "applies only to a fleet of a controller; use the flags of `edgefast run` instead"
            )
            report.warn(f"spec.{field}", "NotSupported", message)
    if of_gateway and spec.merge_gateways is not None:
        message = "is read from the EdgeProxy of a GatewayClass only"
        report.warn("spec.mergeGateways", "Forbidden", message)
    if spec.http is not None:
        _check_ceilings(spec.http, report)
    if spec.http2 is not None:
        check_http2(spec.http2, report)
    if spec.stream is not None:
        check_stream(spec.stream, report)
    _check_words(spec, report)
    merged = merge_proxy_specs(class_spec, spec) if class_spec else spec
    if spec.client_address is not None and merged.client_address is not None:
        _check_senders(merged.client_address, report)
    warn_unserved(proxy, report)
    return report


def _senders_of(client: ProxyClientAddress) -> tuple[str, ...]:
    """Return the networks that are trusted to send PROXY protocol headers: by default `trustedCIDRs`."""
    senders = client.proxy_protocol_cidrs
    return (client.trusted_cidrs or ()) if senders is None else senders


def _check_senders(client: ProxyClientAddress, report: Report) -> None:
    """Report a PROXY protocol that no peer can use, and one that every peer can use."""
    path = "spec.clientAddress.proxyProtocol"
    if client.proxy_protocol in (None, "off"):
        return
    senders = _senders_of(client)
    if not senders:
        hint = "set clientAddress.proxyProtocolCIDRs to the addresses of the load balancers"
        if client.proxy_protocol == "optional":
            message = '"optional" without trusted senders; connections with a PROXY protocol header are closed'
            report.warn(path, "Required", message, hint)
        else:  # an unknown word counts as "required"
            message = '"required" without trusted senders; every connection is closed'
            report.refuse(path, "Required", message, hint)
    elif any(one.endswith("/0") for one in senders):
        message = (
            f'"{client.proxy_protocol}" trusts every peer; any peer can set the client address'
        )
        hint = "limit clientAddress.proxyProtocolCIDRs to the addresses of the load balancers"
        report.warn(path, "Invalid", message, hint)


def _check_words(spec: EdgeProxySpec, report: Report) -> None:
    http, client = spec.http or ProxyHTTP(), spec.client_address or ProxyClientAddress()
    log = spec.access_log or ProxyAccessLog()
    headers = spec.headers or ProxyHeaders()
    cert = headers.x_forwarded_client_cert or ForwardedClientCertificate()
    retry = (spec.grpc or ProxyGRPC()).retry or ProxyGRPCRetry()
    words: tuple[tuple[str, str | None, tuple[str, ...]], ...] = (
        ("http.escapedSlashes", http.escaped_slashes, _SLASHES),
        ("http.pathParameters", http.path_parameters, _PARAMETERS),
        ("http.rawCharacters", http.raw_characters, _RAW),
        ("http.underscores", http.underscores, tuple(_UNDERSCORES)),
        ("clientAddress.proxyProtocol", client.proxy_protocol, _PROXY_PROTOCOL),
        *(
            (f"headers.forwarded[{at}]", one, _FORWARDED)
            for at, one in enumerate(headers.forwarded or ())
        ),
        ("headers.xForwardedFor", headers.x_forwarded_for, _FORWARDED_FOR),
        ("headers.xForwardedClientCert.mode", cert.mode, tuple(_CLIENT_CERT)),
        *(
            (f"headers.xForwardedClientCert.certDetailsToAdd[{at}]", one, _CERT_DETAILS)
            for at, one in enumerate(cert.cert_details_to_add or ())
        ),
        ("headers.requestID", headers.request_id, tuple(_REQUEST_IDS)),
        ("proxyProtocol", spec.proxy_protocol, PROXY_PROTOCOLS),
        ("accessLog.format", log.format, LOG_FORMATS),
        *((f"accessLog.fields[{at}]", one, LOG_FIELDS) for at, one in enumerate(log.fields or ())),
        *((f"grpc.retry.codes[{at}]", one, GRPC_CODES) for at, one in enumerate(retry.codes or ())),
        ("tracing.protocol", spec.tracing.protocol if spec.tracing else None, PROTOCOLS),
    )
    for path, word, known in words:
        if word is not None and word not in known:
            absent = path.startswith(
                ("accessLog.", "grpc.", "headers.forwarded", "tracing.")
            ) or path.endswith("]")
            instead = "it is ignored" if absent else f"{known[0]} is used instead"
            message = f"{supported_text(word, known)}; {instead}"
            report.refuse(f"spec.{path}", "NotSupported", message)


def _check_ceilings(http: ProxyHTTP, report: Report) -> None:
    sizes = (
        ("requestHead", http.request_head),
        ("requestLine", http.request_line),
        ("responseHead", http.response_head),
    )
    for field, size in sizes:
        if size is not None and parse_size(size) > MAX_HEAD:
            message = f'"{size}" is more than {MAX_HEAD // 1024}KiB, which is used instead'
            report.refuse(f"spec.http.{field}", "Invalid", message)
    if http.body_start is not None and parse_size(http.body_start) > MAX_BODY_START:
        message = (
            f'"{http.body_start}" is more than {MAX_BODY_START // 1024}KiB, which is used instead'
        )
        report.refuse("spec.http.bodyStart", "Invalid", message)
    if http.mirror_buffer is not None and parse_size(http.mirror_buffer) > MAX_MIRROR_BUFFER:
        message = f'"{http.mirror_buffer}" is more than {MAX_MIRROR_BUFFER >> 20}MiB, which is used instead'
        report.refuse("spec.http.mirrorBuffer", "Invalid", message)
    if http.header_count is not None and http.header_count > MAX_HEADERS:
        message = f"{http.header_count} is more than {MAX_HEADERS}, which is used instead"
        report.refuse("spec.http.headerCount", "Invalid", message)


def translate_http(spec: EdgeProxySpec) -> ir.HttpSettings:
    """Translate a merged spec (no field of `http` but bodySize, http10 and via is absent then)."""
    http, client, limits = spec.http, spec.client_address, spec.rate_limit
    assert http and spec.http2 and spec.grpc and client and limits
    return ir.HttpSettings(
        request_head=_head(http.request_head),
        request_line=_head(http.request_line),
        header_count=min(http.header_count or MAX_HEADERS, MAX_HEADERS),
        response_head=_head(http.response_head),
        body_size=parse_size(http.body_size or 0),
        buffer_bytes=parse_size(http.buffer_bytes or 0),
        body_start=min(parse_size(http.body_start or 0), MAX_BODY_START),
        body_start_timeout=parse_duration(http.body_start_timeout or "0s"),
        body_buffer=parse_size(http.body_buffer or 0),
        mirror_buffer=min(parse_size(http.mirror_buffer or 0), MAX_MIRROR_BUFFER),
        body_share=http.body_share or 100,
        body_client_share=http.body_client_share or 100,
        body_rate=parse_size(http.body_rate or 0),
        answer_share=http.answer_share or 100,
        answer_rate=parse_size(http.answer_rate or 0),
        head_timeout=parse_duration(http.head_timeout or "0s"),
        idle_timeout=parse_duration(http.idle_timeout or "0s"),
        stream_idle_timeout=parse_duration(http.stream_idle_timeout or "0s"),
        connect_timeout=parse_duration(http.connect_timeout or "0s"),
        upstream_idle=parse_duration(http.upstream_idle or "0s"),
        tls_drain=parse_duration(http.tls_drain_timeout or "0s"),
        max_connections=http.max_connections or 0,
        stream_share=http.stream_share or 100,
        max_streams=http.max_streams or 0,
        address_streams=http.address_streams or 0,
        max_requests_per_connection=http.max_requests_per_connection or 0,
        escaped_slashes=_known(http.escaped_slashes, _SLASHES),
        path_parameters=_known(http.path_parameters, _PARAMETERS),
        raw_characters=_known(http.raw_characters, _RAW),
        http10=http.http10 is not None and http.http10.enabled is not False,
        http10_host=(http.http10.default_host or "").lower() if http.http10 is not None else "",
        underscores=_UNDERSCORES.get(http.underscores or "", "Reject"),
        via=http.via or "",
        client_address=ir.ClientAddress(
            trusted_hops=client.trusted_hops or 0,
            trusted_cidrs=tuple(client.trusted_cidrs or ()),
            proxy_protocol=_known(client.proxy_protocol, _PROXY_PROTOCOL),
            proxy_senders=tuple(_senders_of(client)),
        ),
        forwarded=_translate_headers(spec.headers or ProxyHeaders()),
        rate_limit_headers=bool(limits.headers),
        retry_after=bool(limits.retry_after),
        http2=translate_http2(spec.http2),
        grpc=translate_grpc(spec.grpc),
    )


def _translate_headers(headers: ProxyHeaders) -> ir.ForwardedHeaders:
    names = {one.lower() for one in headers.forwarded or () if one in _FORWARDED}
    cert = headers.x_forwarded_client_cert
    details = (cert.cert_details_to_add or ()) if cert else ()
    return ir.ForwardedHeaders(
        names=tuple(sorted(names)),
        client_cert=_CLIENT_CERT.get(cert.mode or "", "sanitize") if cert else "",
        client_cert_details=tuple(sorted(one.lower() for one in details if one in _CERT_DETAILS)),
        overwrite_for=_known(headers.x_forwarded_for, _FORWARDED_FOR) == "Overwrite",
        request_id=_REQUEST_IDS.get(headers.request_id or "", "generate"),
    )


def _known(word: _Word | None, known: tuple[_Word, ...]) -> _Word:
    return word if word in known else known[0]


def _head(size: int | str | None) -> int:
    return min(parse_size(size or 0), MAX_HEAD)
