"""Refused checks: the locations whose auth-url has a variable in its host, and whose checks edgefast does not send.

In: a location and its host, the evaluator. Out: whether edgefast closes the location.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ingress.message import Request
from ingress.naive import Evaluator
from ingress.naive.access import external_of
from ingress.naive.hosts import CATCH_ALL, Host, Location
from ingress.naive.matching import match, normalise

__all__ = ["is_refused"]

#: Annotations of a location that decide about the checks of an auth-url to its path, or change them.
_CHANGING = (
    "affinity allowlist-source-range auth-tls-secret auth-type auth-url configuration-snippet custom-headers custom-http-errors "
    "default-backend denylist-source-range limit-connections limit-rpm limit-rps mirror-target proxy-cookie-domain proxy-cookie-path "
    "proxy-redirect-from proxy-redirect-to upstream-vhost whitelist-source-range x-forwarded-prefix"
).split()
#: Settings of the ConfigMap that do it for all locations.
_CHANGING_ALL = (
    "block-cidrs custom-http-errors denylist-source-range whitelist-source-range".split()
)


def is_refused(location: Location, host: Host, plain: Evaluator) -> bool:
    """An auth-url with a variable in its host, outside no-auth-locations, that the Service of its path does not get unchanged."""
    objects = plain.objects
    external = external_of(location, objects)
    listed = objects.setting("no-auth-locations", "/.well-known/acme-challenge").split(",")
    if any(location.path.startswith(one) for one in listed):
        return False
    if external is None or "$" not in urlsplit(external.url).netloc:
        return False
    parts = urlsplit(external.url)
    if host.name == CATCH_ALL or host.name.startswith("*."):
        return True
    port = 443 if parts.scheme == "https" else 80
    check = Request(host=host.name, target=parts.path or "/", scheme=parts.scheme, port=port)
    behind = match(host, normalise(check.target)).served.location
    if behind.owner is None or behind.upstream is None or external_of(behind, objects):
        return True
    if any(behind.owner.raw(name) for name in _CHANGING):
        return True
    if any(objects.setting(name) for name in _CHANGING_ALL):
        return True
    if behind.upstream in plain.canaries or behind.owner.text("backend-protocol", "HTTP") != "HTTP":
        return True
    return plain.answer(check).step not in ("backend", "no endpoints")
