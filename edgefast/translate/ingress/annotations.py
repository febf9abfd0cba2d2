"""Annotations: the annotations of one Ingress as one validated struct, with the effect of each invalid one.

In: the annotations of an Ingress, the settings of the ConfigMap. Out: `Annotations`. An invalid annotation has one of three
effects, as in ingress-nginx: the default applies, the locations answer 503 (`closed`), or the Ingress is not served (`refused`).
Annotations that edgefast does not serve, and unknown ones, become notes. Modules of their topics read most annotations.
Source: ingress-nginx internal/ingress/annotations (one package for each group).
Must never: look up an object, or show the value of a snippet.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgefast.api.limits import MAX_SHOWN_NAME
from edgefast.diagnostics.problem import did_you_mean
from edgefast.translate.ingress.access_annotations import (
    read_addresses,
    read_auth_url,
    read_basic,
)
from edgefast.translate.ingress.annotation_fields import Annotations
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.backend_tls import read_backend_tls
from edgefast.translate.ingress.balancing import read_balancer
from edgefast.translate.ingress.canary import read_canary
from edgefast.translate.ingress.client_tls import read_client_tls
from edgefast.translate.ingress.configmap import Globals
from edgefast.translate.ingress.cors import read_cors
from edgefast.translate.ingress.error_annotations import read_error_pages
from edgefast.translate.ingress.known import KNOWN
from edgefast.translate.ingress.limits import read_limits
from edgefast.translate.ingress.mirror import read_mirror
from edgefast.translate.ingress.redirect_annotations import read_redirects
from edgefast.translate.ingress.response_rewrite import read_responses
from edgefast.translate.ingress.snippet_annotations import read_snippets
from edgefast.translate.ingress.traffic_annotations import (
    read_affinity,
    read_body_size,
    read_connect_timeout,
    read_next_upstream,
    read_rate,
)
from edgefast.translate.ingress.unserved import CLOSING, DIFFERS, HARMLESS, PARTS
from edgefast.translate.ingress.values import (
    BASIC,
    PATH_WITH_GROUPS,
    is_server_name,
    one_of,
)

__all__ = ["read_annotations"]

#: Unknown annotations of one Ingress that are reported one by one.
_MOST_UNKNOWN = 32

_PROTOCOLS = ("auto_http", "http", "https", "grpc", "grpcs", "fcgi")
_SWITCH = one_of("on", "off")


def read_annotations(
    annotations: Mapping[str, str], settings: Globals, namespace: str = ""
) -> Annotations:
    """Return the annotations of an Ingress; those of other projects are left out."""
    reader = AnnotationReader(annotations, settings, namespace)
    values = reader.values
    snippet = read_snippets(reader)
    redirection, www, relative = read_redirects(reader)
    allow, deny, own_lists = read_addresses(reader)
    tries, codes = read_next_upstream(reader)
    made = Annotations(
        rewrite=reader.read("", values.text, "rewrite-target", PATH_WITH_GROUPS),
        use_regex=reader.read(False, values.flag, "use-regex"),
        ssl_redirect=reader.read(settings.ssl_redirect, values.flag, "ssl-redirect"),
        force_ssl_redirect=reader.read(
            settings.force_ssl_redirect, values.flag, "force-ssl-redirect"
        ),
        preserve_trailing_slash=reader.read(
            settings.preserve_trailing_slash, values.flag, "preserve-trailing-slash"
        ),
        app_root=_read_app_root(reader),
        redirection=redirection,
        from_to_www=www,
        aliases=_read_aliases(reader),
        canary=read_canary(reader),
        allow=allow or snippet.allow,
        deny=deny or snippet.deny,
        own_lists=own_lists or bool(snippet.allow or snippet.deny),
        basic=read_basic(reader),
        auth=read_auth_url(reader),
        satisfy_any=reader.read("", values.text, "satisfy", one_of("any", "all")) == "any",
        cors=read_cors(reader),
        body_size=read_body_size(reader),
        read_timeout=reader.read(settings.read_timeout, values.number, "proxy-read-timeout"),
        send_timeout=reader.read(settings.send_timeout, values.number, "proxy-send-timeout"),
        connect_timeout=read_connect_timeout(reader),
        retry_timeout=max(
            0,
            reader.read(settings.retry_timeout, values.number, "proxy-next-upstream-timeout"),
        ),
        tries=tries,
        retry_codes=codes,
        affinity=read_affinity(reader),
        limits=read_limits(reader),
        rate=read_rate(reader, "limit-rate", settings.rate),
        rate_after=read_rate(reader, "limit-rate-after", settings.rate_after),
        balancer=read_balancer(reader),
        upstream_vhost=reader.validate_text("upstream-vhost", is_server_name),
        protocol=_read_protocol(reader),
        verifies_backend=reader.read("off", values.text, "proxy-ssl-verify", _SWITCH) == "on",
        backend_tls=read_backend_tls(reader),
        passthrough=reader.read(False, values.flag, "ssl-passthrough"),
        client_tls=read_client_tls(reader),
        custom_headers=reader.read("", values.text, "custom-headers", BASIC),
        mirror=read_mirror(reader),
        prefix_header=_read_prefix_header(reader),
        service_upstream=reader.read(settings.service_upstream, values.flag, "service-upstream"),
        pages=read_error_pages(reader),
        snippet=snippet,
        responses=read_responses(reader),
        port_in_redirects=reader.read(
            settings.port_in_redirects, values.flag, "use-port-in-redirects"
        ),
        relative_redirects=relative or settings.relative_redirects,
    )
    _note_others(reader)
    return msgspec.structs.replace(
        made,
        refused=reader.refused,
        closed=("ConfigMap",) if settings.closed else tuple(reader.closed),
        closes_host=reader.closes_host,
        closes_no_auth=reader.closes_no_auth,
        notes=tuple(reader.notes),
    )


def _read_app_root(reader: AnnotationReader) -> str:
    found = reader.read("", reader.values.text, "app-root", PATH_WITH_GROUPS)
    if not found:
        return ""
    if not found.startswith("/"):
        reader.warn("app-root", "not an absolute path; edgefast ignores it, as ingress-nginx does")
        return ""
    if "$" in found:
        reader.note("app-root", "variables of nginx are not served; / is not redirected")
        return ""
    return found


def _read_prefix_header(reader: AnnotationReader) -> str:
    found = reader.validate_text("x-forwarded-prefix", PATH_WITH_GROUPS)
    if "$" in found:
        message = "groups and variables of nginx are not served; backends get no X-Forwarded-Prefix"
        reader.warn("x-forwarded-prefix", message)
        return ""
    return found


def _read_aliases(reader: AnnotationReader) -> tuple[str, ...]:
    text = reader.validate_text("server-alias", is_server_name)
    return tuple(sorted({one.strip() for one in text.split(",") if one.strip()}))


def _read_protocol(reader: AnnotationReader) -> str:
    check = one_of(*_PROTOCOLS, folded=True)
    found = reader.read("HTTP", reader.values.text, "backend-protocol", check).strip().upper()
    if found == "FCGI":
        reader.close("backend-protocol", "FCGI is not served (allowed: HTTP, HTTPS, GRPC, GRPCS)")
    if found == "AUTO_HTTP":
        reader.close(
            "backend-protocol", "AUTO_HTTP is not served (allowed: HTTP, HTTPS, GRPC, GRPCS)"
        )
    return found


def _note_others(reader: AnnotationReader) -> None:
    values = reader.values
    unknown = 0
    for name in values.names():
        if name in values.seen or name in HARMLESS:
            continue
        if name in CLOSING:
            _close_unserved(reader, name)
        elif name in DIFFERS:
            reader.warn(name, f"not served: {DIFFERS[name]}")
        elif name not in PARTS:
            unknown += 1
            message = "not an annotation of ingress-nginx 1.15; it has no effect"
            if unknown <= _MOST_UNKNOWN:
                reader.warn(name[:MAX_SHOWN_NAME], message, did_you_mean(name, KNOWN))
    if unknown > _MOST_UNKNOWN:
        more = unknown - _MOST_UNKNOWN
        message = f"{more} more are not annotations of ingress-nginx 1.15; they have no effect"
        reader.warn("metadata.annotations", message)


def _close_unserved(reader: AnnotationReader, name: str) -> None:
    if name in ("enable-modsecurity", "enable-owasp-core-rules"):
        if not reader.read(False, reader.values.flag, name):
            return
    elif not reader.read("", reader.values.text, name, lambda one: True):
        return
    reader.close(name, f"not served: {CLOSING[name]}")
