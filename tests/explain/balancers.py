"""What random tables, and tests of one choice after the other, let endpoints be chosen by."""

from __future__ import annotations

from random import Random

from edgefast import ir

#: What decides which of a cluster's endpoints a request gets.
BALANCERS = (
    *(ir.LoadBalancer(), ir.LoadBalancer(type="random"), ir.LoadBalancer(type="round_robin")),
    *(
        ir.LoadBalancer(type="hash", hash=one)
        for one in (
            ir.HashPolicy(source=True),
            *(ir.HashPolicy(headers=(one,)) for one in ("x-a", "host", "x_b", "x-forwarded-for")),
            *(ir.HashPolicy(headers=("x-b", one)) for one in ("x-user", "x-real-ip", "accept")),
            ir.HashPolicy(cookie=ir.HashCookie("c")),
            ir.HashPolicy(cookie=ir.HashCookie("d", ttl=60, attributes="; Path=/")),
            *(ir.HashPolicy(params=one) for one in (("q",), ("r", "q", "x-a"))),
            ir.HashPolicy(parts=(ir.HashPart("target"), ir.HashPart("host"))),
            ir.HashPolicy(
                parts=tuple(
                    ir.HashPart(kind, name)
                    for kind, name in (
                        ("path", ""),
                        ("query", ""),
                        ("source", ""),
                        ("cookie", "c"),
                        ("header", "x-b"),
                        ("param", "q"),
                    )
                )
            ),
            ir.HashPolicy(parts=(ir.HashPart("header", "x-a"), ir.HashPart("param", "q"))),
        )
    ),
)

#: Bounds of ir.Traffic that let nothing through.
SHUT = ({"max_connections": 0}, {"max_endpoint_connections": 0})


def random_endpoints(random: Random, port: int) -> tuple[ir.Endpoint, ...]:
    """Addresses of one backend; one may be there twice."""
    return tuple(
        ir.Endpoint(
            address=f"127.0.0.{random.randint(1, 8)}", port=port, weight=random.choice([1, 1, 3])
        )
        for _ in range(random.choice([1, 5, 5]))
    )
