"""Redirects: from-to-www, app-root, the missing slash, temporal and permanent redirects, ssl-redirect."""

from __future__ import annotations

from ingress.message import Request
from ingress.naive.client import Client, name_of_host
from ingress.naive.hosts import Host, Location
from ingress.naive.matching import Served, served_locations
from ingress.naive.objects import Objects
from ingress.naive.variables import expand

_WITH_LOCATION = (301, 302, 303, 307, 308)


def redirect_code(objects: Objects) -> int:
    """The status of ssl-redirect and from-to-www: http-redirect-code of the ConfigMap, else 308."""
    return int(objects.setting("http-redirect-code", "308"))


def without_slash(target: str) -> str:
    """One trailing slash is removed (of the whole request URI, query included)."""
    return target.removesuffix("/")


def www_location(request: Request, host: Host, objects: Objects) -> str:
    """from-to-www is a redirect to `scheme://name:port` + URI without one trailing slash: the port is always written."""
    scheme, port = request.scheme, str(request.port)
    if objects.setting("use-forwarded-headers") == "true":
        scheme = request.value("x-forwarded-proto") or scheme
        port = request.value("x-forwarded-port") or port
    return f"{scheme}://{host.name}:{port}{without_slash(request.target)}"


def app_root(request: Request, host: Host, path: str) -> str:
    """app-root is 302 to `scheme://Host` + target, only for `/` but for the whole host, whichever Ingress gives it.

    With several of them the first one in the order of locations decides.
    """
    if path != "/":
        return ""
    for one in served_locations(host):
        target = one.location.text("app-root")
        if target.startswith("/"):
            return f"{request.scheme}://{request.host}{target}"
    return ""


def slash_location(request: Request, served: Served, objects: Objects) -> str:
    """nginx' own 301 to `/dir/` (scheme and host without port, query kept)."""
    _, mark, query = request.target.partition("?")
    return absolute(
        request, served.location, objects, served.path + (mark + query if query else "")
    )


def absolute(request: Request, location: Location, objects: Objects, target: str) -> str:
    """nginx adds scheme and host to a path in Location, unless relative-redirects; the port by use-port-in-redirects."""
    if location.flag("relative-redirects") or _global_flag(objects, "relative-redirects", False):
        return target
    port = ""
    default = {"http": 80, "https": 443}[request.scheme]
    if writes_port(location, objects) and request.port != default:
        port = f":{request.port}"
    return f"{request.scheme}://{name_of_host(request.host)}{port}{target}"


def fixed_redirect(request: Request, served: Served, objects: Objects) -> tuple[int, str] | None:
    """temporal (300-307, else 302) beats permanent (300-308, else 301). nginx writes no Location for 300, 304, 305 and 306. A
    permanent one may be a path: nginx makes it absolute, as its own 301. Variables need enable-annotation-validations: false."""
    location = served.location
    if location.owner is None or not location.owner.has_good_redirect():
        return None
    for kind, last, default in (("temporal", 307, 302), ("permanent", 308, 301)):
        url = location.text(f"{kind}-redirect")
        if not url:
            continue
        given = int(location.text(f"{kind}-redirect-code") or 0)
        code = given if 300 <= given <= last else default
        if code not in _WITH_LOCATION:
            return code, ""
        url = expand(url, request)
        return code, absolute(request, location, objects, url) if url.startswith("/") else url
    return None


def writes_port(location: Location, objects: Objects) -> bool:
    """use-port-in-redirects of the location, else of the ConfigMap."""
    default = location.owner is not None and _global_flag(objects, "use-port-in-redirects", False)
    return location.flag("use-port-in-redirects", default)


def ssl_location(
    request: Request, client: Client, served: Served, objects: Objects, *, secured: bool
) -> str:
    """ssl-redirect (308) per location when the host has a certificate, unless preserve-trailing-slash without one trailing slash;
    the port of Host is dropped. force-ssl-redirect also without a certificate; neither for paths under
    `/.well-known/acme-challenge`."""
    if client.scheme != "http" or is_listed(
        served, objects.setting("no-tls-redirect-locations", "/.well-known/acme-challenge")
    ):
        return ""
    location = served.location
    wanted = location.flag("ssl-redirect", _global_flag(objects, "ssl-redirect", True))
    if location.owner is None or location.without_redirects:
        wanted = False  # no annotations were read for it, defaults of the ConfigMap neither
    forced = location.flag("force-ssl-redirect", _forced(served, objects))
    if not forced and not (wanted and secured):
        return ""
    keep = location.flag(
        "preserve-trailing-slash", _global_flag(objects, "preserve-trailing-slash", False)
    )
    target = request.target if keep else without_slash(request.target)
    port = ":443" if writes_port(location, objects) else ""
    return f"https://{client.host.partition(':')[0]}{port}{target}"


def _forced(served: Served, objects: Objects) -> bool:
    ignored = served.location.owner is None or served.location.without_redirects
    return not ignored and _global_flag(objects, "force-ssl-redirect", False)


def _global_flag(objects: Objects, name: str, default: bool) -> bool:
    return objects.setting(name, str(default).lower()) == "true"


def is_listed(served: Served, listed: str) -> bool:
    """A location whose path begins with an entry of a list of locations."""
    return any(one.strip() and served.path.startswith(one.strip()) for one in listed.split(","))
