"""Benchmark of signed tokens: microseconds for one that is known, and for one of each algorithm that is not.

In: tokens as large issuers make them, about 700 bytes. Out: `us_each` in the extra info, beside the goal. Bytes are new each time, as those of
a request are: nobody has their hash. Run: pytest bench/test_bench_tokens.py --benchmark-enable. Must never assert a time.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from auth.jwt.issuer import ALGORITHMS, NOW, judge, jwk, provider, token
from core.policy.token_verifiers import VerifierRig

KNOWN = 1.5  # us
TIMES = 2000

# CPU time: what others on the machine do costs caches, but is not counted.
pytestmark = pytest.mark.benchmark(timer=time.process_time)


def typical(alg: str) -> bytes:
    """A token with what an identity provider puts into one."""
    more: dict[str, Any] = {
        "aud": ["account", "api"],
        "jti": "9d2f1c9e-7f1a-4a55-8d5e-3b8e2f0e5a11",
        "azp": "web",
        "scope": "openid profile email",
        "realm_access": {"roles": ["offline_access", "uma_authorization", "user"]},
        "email": "jane.doe@example.com",
        "name": "Jane Doe",
        "nbf": NOW,
    }
    return token(alg, header={"kid": "k1"}, **more)


def test_known(benchmark: BenchmarkFixture) -> None:
    rig = VerifierRig(cost=0.0)
    verifier = rig.verifier(provider(jwk("RS256", kid="k1")))
    made = typical("RS256")
    assert rig.word(verifier, made) == ""
    fresh = [bytes(bytearray(made)) for _ in range(TIMES)]

    def look() -> None:
        for one in fresh:
            verifier.look(one)

    def anew() -> None:
        fresh[:] = [bytes(bytearray(made)) for _ in range(TIMES)]

    benchmark.pedantic(look, setup=anew, rounds=20)
    note(benchmark, TIMES, KNOWN)


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_verified(benchmark: BenchmarkFixture, alg: str) -> None:
    spec = provider(jwk(alg, kid="k1"))
    made = typical(alg)
    rig = VerifierRig(cost=0.0)
    verifier = rig.verifier(spec)
    assert judge(made, spec).good

    from edgefast.auth.jwt.compact import read_token
    from edgefast.auth.jwt.token_check import Plan, look_over

    def verify() -> None:
        plan = look_over(read_token(made), verifier.providers, NOW)
        assert isinstance(plan, Plan) and plan.try_keys().good

    benchmark.pedantic(verify, rounds=200, warmup_rounds=5)
    note(benchmark, 1, None)


def note(benchmark: BenchmarkFixture, times: int, goal: float | None) -> None:
    """Say what one of them took."""
    if benchmark.stats is not None:  # with --benchmark-disable it runs once, unmeasured
        benchmark.extra_info["us_each"] = round(benchmark.stats.stats.median / times * 1e6, 2)
        benchmark.extra_info["goal"] = goal
