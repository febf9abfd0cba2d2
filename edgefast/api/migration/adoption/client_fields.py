"""Client fields: each field of Envoy Gateway's ClientTrafficPolicy, and the field of an EdgeProxy that it is. Pure data.

Source: api/v1alpha1 of Envoy Gateway 1.9.1 (types), read for names alone.
Must never: leave a field out; the reader refuses what is not here (client_traffic.py).
"""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["CLIENT_FIELDS", "ClientField"]


class ClientField(msgspec.Struct, frozen=True):
    """One field."""

    effect: Literal["served", "named", "closes"]
    said: str  # our kind and field, or why not and what to do
    at: str = ""  # the field of EdgeProxy spec with the same value
    words: dict[str, object] = {}  # values that have another name, or none (None: named)
    note: str = ""  # what is different
    noted: tuple[object, ...] = ()  # the values with that note; all if empty


def _same(
    at: str,
    note: str = "",
    words: dict[str, object] | None = None,
    noted: tuple[object, ...] = (),
) -> ClientField:
    return ClientField("served", f"EdgeProxy spec.{at}", at, words or {}, note, noted)


def _read(said: str, note: str = "") -> ClientField:
    return ClientField("served", said, note=note)


def _named(why: str) -> ClientField:
    return ClientField("named", why)


def _closes(why: str) -> ClientField:
    return ClientField("closes", why)


_CIPHERS = "edgefast uses the cipher suites and curves of its TLS library"
_KEEPALIVE = "EdgeProxy spec.http.idleTimeout closes idle client connections"
_LIMITS = "EdgeProxy spec.http bounds connections and times"

CLIENT_FIELDS: dict[str, ClientField] = {
    "tcpKeepalive": _named(_KEEPALIVE),
    "enableProxyProtocol": _read("EdgeProxy spec.clientAddress.proxyProtocol"),
    "proxyProtocol": _read("EdgeProxy spec.clientAddress.proxyProtocol"),
    "proxyProtocol.optional": _read("EdgeProxy spec.clientAddress.proxyProtocol (optional)"),
    "clientIPDetection.xForwardedFor.numTrustedHops": _same("clientAddress.trustedHops"),
    "clientIPDetection.xForwardedFor.trustedCIDRs": _same("clientAddress.trustedCIDRs"),
    "clientIPDetection.xForwardedFor.disableXForwardedForAppend": _named(
        "edgefast always appends the address of its peer"
    ),
    "clientIPDetection.directSourceIP": _read(
        "EdgeProxy spec.clientAddress, whose default is the peer"
    ),
    "clientIPDetection.customHeader": _closes(
        "no header but x-forwarded-for and the PROXY protocol has the client address"
    ),
    "tls.clientValidation.caCertificateRefs": _read(
        "tls.frontend of the Gateway; with a Secret and `optional`, the option gateway.edge.io/client-ca of the listener"
    ),
    "tls.clientValidation.optional": _read("the option gateway.edge.io/client-certificate"),
    "tls.clientValidation.mode": _read(
        "RequireAndVerify and VerifyIfGiven, which are `optional` false and true"
    ),
    "tls.clientValidation.spkiHashes": _closes("edgefast does not compare hashes of certificates"),
    "tls.clientValidation.certificateHashes": _closes(
        "edgefast does not compare hashes of certificates"
    ),
    "tls.clientValidation.subjectAltNames": _closes(
        "the option gateway.edge.io/client-subject compares the subject"
    ),
    "tls.clientValidation.crl": _closes("put ca.crl into the Secret of gateway.edge.io/client-ca"),
    "tls.clientValidation.allowExpiredCertificate": _closes(
        "edgefast refuses expired certificates"
    ),
    "tls.minVersion": _read(
        "the option gateway.edge.io/tls-min-version of the listener, 1.2 or 1.3"
    ),
    "tls.maxVersion": _named("edgefast offers TLS 1.3"),
    "tls.ciphers": _named(_CIPHERS),
    "tls.ecdhCurves": _named(_CIPHERS),
    "tls.signatureAlgorithms": _named(_CIPHERS),
    "tls.alpnProtocols": _read("EdgeProxy spec.http2.enabled"),
    "tls.fingerprints": _named("edgefast computes no fingerprints"),
    "tls.session": _named("edgefast resumes TLS sessions with tickets"),
    "path.escapedSlashesAction": _same(
        "http.escapedSlashes",
        words={
            "KeepUnchanged": "KeepUnchanged",
            "RejectRequest": "Reject",
            "UnescapeAndRedirect": "UnescapeAndRedirect",
            "UnescapeAndForward": "UnescapeAndRedirect",
        },
        note="edgefast redirects to the unescaped path, and does not forward it",
        noted=("UnescapeAndForward",),
    ),
    "path.disableMergeSlashes": _named("edgefast always merges slashes"),
    "headers.enableEnvoyHeaders": _named("edgefast sends no x-envoy headers"),
    "headers.disableRateLimitHeaders": _read("EdgeProxy spec.rateLimit.headers"),
    "headers.xForwardedClientCert.mode": _same("headers.xForwardedClientCert.mode"),
    "headers.xForwardedClientCert.certDetailsToAdd": _same(
        "headers.xForwardedClientCert.certDetailsToAdd", note="Chain is not sent"
    ),
    "headers.withUnderscoresAction": _same("http.underscores"),
    "headers.preserveXRequestID": _read("EdgeProxy spec.headers.requestID (PreserveOrGenerate)"),
    "headers.requestID": _same(
        "headers.requestID",
        words={
            "PreserveOrGenerate": "PreserveOrGenerate",
            "Generate": "Generate",
            "Preserve": "PreserveOrGenerate",
            "Disable": None,
        },
        note="edgefast generates a missing x-request-id",
        noted=("Preserve", "Disable"),
    ),
    "headers.earlyRequestHeaders": _closes(
        "policies may rely on these headers; use the filter RequestHeaderModifier of each rule"
    ),
    "headers.lateResponseHeaders": _named("use the filter ResponseHeaderModifier of each rule"),
    "headers.host": _closes("edgefast routes by the host that the client sent"),
    "timeout.tcp.idleTimeout": _same("stream.idleTimeout"),
    "timeout.tcp.tlsHandshakeTimeout": _named("EdgeProxy spec.http.headTimeout bounds it"),
    "timeout.tcp.connectionInspectionTimeout": _same("stream.helloTimeout"),
    "timeout.http.requestReceivedTimeout": _named(
        "EdgeProxy spec.http.bodyRate and streamIdleTimeout end slow bodies"
    ),
    "timeout.http.requestHeadersReceivedTimeout": _same("http.headTimeout"),
    "timeout.http.idleTimeout": _same("http.idleTimeout"),
    "timeout.http.streamIdleTimeout": _same("http.streamIdleTimeout"),
    "connection.connectionLimit.value": _same(
        "http.maxConnections", note="the limit is for each worker, not for the whole proxy"
    ),
    "connection.connectionLimit.maxRequestsPerConnection": _same("http.maxRequestsPerConnection"),
    "connection.connectionLimit.closeDelay": _named(_LIMITS),
    "connection.connectionLimit.maxConnectionDuration": _named(_LIMITS),
    "connection.connectionLimit.maxStreamDuration": _named(_LIMITS),
    "connection.bufferLimit": _same("http.bufferBytes"),
    "connection.socketBufferLimit": _named("the operating system sizes socket buffers"),
    "connection.maxAcceptPerSocketEvent": _named("edgefast bounds it itself"),
    "http1.enableTrailers": _named("edgefast forwards trailers where HTTP allows them"),
    "http1.preserveHeaderCase": _named("names of headers are not case-sensitive"),
    "http1.http10": _read("EdgeProxy spec.http.http10"),
    "http1.http10.useDefaultHost": _named(
        "EdgeProxy spec.http.http10.defaultHost is a host name; requests without Host get 400"
    ),
    "http1.disableSafeMaxConnectionDuration": _named(_LIMITS),
    "http1.ignoredUpgradeTypes": _named("edgefast forwards upgrades to backends"),
    "http2.initialStreamWindowSize": _same("http2.initialStreamWindowSize"),
    "http2.initialConnectionWindowSize": _same("http2.initialConnectionWindowSize"),
    "http2.maxConcurrentStreams": _same("http2.maxConcurrentStreams"),
    "http2.onInvalidMessage": _named("an invalid message ends its stream or connection"),
    "http2.connectionKeepalive.interval": _same("http2.keepalivePing"),
    "http2.connectionKeepalive.timeout": _named("edgefast bounds the answer to a PING itself"),
    "http2.connectionKeepalive.intervalJitter": _named("PINGs have no jitter"),
    "http2.connectionKeepalive.idleInterval": _named("use EdgeProxy spec.http2.keepalivePing"),
    "http3": _named("edgefast does not support HTTP/3; clients use HTTP/2 or HTTP/1.1"),
    "grpc.enableWeb": _same("grpc.web"),
    "healthCheck.path": _named("write a rule with an HTTPRouteFilter spec.directResponse"),
    "scheme": _named("x-forwarded-proto is the scheme of the client"),
}
