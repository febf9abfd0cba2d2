"""nginx's words for a scenario's policy: a location for /get/kept.

In: a scenario. Out: text of its configuration. Must never give it less to do than the others have.
"""

from bench.policy_ranges import list_ranges
from bench.scenario import Scenario

WITHOUT = ("jwt", "br", "zstd", "session", "oidc")  # Debian's nginx
_KEPT = "  location /get/kept {{ {more} proxy_pass http://{to}; }}\n"


def render_upstream(scenario: Scenario, port: int) -> str:
    """The same endpoints, chosen by a key."""
    if scenario.policy != "hash":
        return ""
    servers = " ".join(f"server {one}:{port};" for one in scenario.list_addresses())
    return (
        f" upstream hashed {{ hash $http_x_user_id consistent; {servers}"
        " keepalive 256; keepalive_requests 10000000; }\n"
    )


def render_location(policy: str) -> str:
    """What stands beside the plain location, in each server."""
    if policy == "cidr":
        allowed = " ".join(f"allow {one};" for one in list_ranges())
        return _KEPT.format(more=f"{allowed} deny all;", to="b0")
    if policy == "extauth":
        ask = "  location = /auth { internal; proxy_pass http://b0/auth; proxy_pass_request_body off; }\n"
        return ask + _KEPT.format(more="auth_request /auth;", to="b0")
    if policy == "gzip":
        return _KEPT.format(more="gzip on; gzip_comp_level 1; gzip_types text/plain;", to="b0")
    return _KEPT.format(more="", to="hashed") if policy == "hash" else ""
