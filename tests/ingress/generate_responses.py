"""Random annotations that rewrite responses of backends, and what the scripted backend answers.

In: a source of randomness of its own, so that other annotations of a seed stay. Out: annotations without their prefix.
"""

from __future__ import annotations

from random import Random

from ingress.message import BACKEND_COOKIES, BACKEND_LOCATION

#: Headers that the scripted backend answers with: share, name, values.
_ANSWERS = (
    (0.3, BACKEND_LOCATION, ("http://inner.test/x?a=/", "/x/y", "https://other.test/")),
    (
        0.3,
        BACKEND_COOKIES,
        (
            "a=1; Path=/; Domain=inner.test|b=2; path=/x/y",
            "a=1; Domain=.INNER.test; Secure|a=2|a=3; Path=/x/",
            "c=3; domain=sub.inner.test; Path=z",
        ),
    ),
)


def random_responses(random: Random) -> dict[str, str]:
    """Annotations of responses, and those that change no answer."""
    pick, chance = random.choice, random.random
    found = {}
    if chance() < 0.7:
        found["proxy-redirect-from"] = pick(
            (
                "http://inner.test/",
                "http://inner.test/",
                "/",
                "off",
                "default",
                "~inner",
                "~^/x",
                "a{}",
            )
        )
    if chance() < 0.7:
        found["proxy-redirect-to"] = pick(("/", "/outer/", "https://out.test/", "off"))
    if chance() < 0.4:
        found["proxy-cookie-domain"] = pick(
            ("inner.test .out.test", "inner.test  out.test", "~.*inner out.test", "off", "one")
        )
    if chance() < 0.4:
        found["proxy-cookie-path"] = pick(("/ /outer/", "/x/ /y/", "~x /whole", "off", "{"))
    if chance() < 0.2:
        found["upstream-hash-by"] = pick(("$request_uri", "$host-${http_x}", "$remote_addr;"))
    if chance() < 0.1:
        found["load-balance"] = pick(("round_robin", "ewma", "other"))
    if chance() < 0.1:
        found["proxy-connect-timeout"] = pick(("3", "x"))
    return found


def random_setting(random: Random) -> dict[str, str]:
    """One setting of the ConfigMap about responses, or none."""
    if random.random() >= 0.3:
        return {}
    more = {
        "proxy-redirect-from": "http://inner.test/",
        "proxy-cookie-path": "/ /configured/",
        "relative-redirects": "true",
        "use-port-in-redirects": "true",
    }
    name = random.choice(sorted(more))
    return {name: more[name]}


def random_answers(random: Random) -> list[tuple[str, str]]:
    """Headers of a request that tell the scripted backend its answer."""
    return [
        (name, random.choice(values)) for share, name, values in _ANSWERS if random.random() < share
    ]
