"""An agent's facts for tests of the metrics page: a proxy that serves files, with a problem, a refusal and a restart.

In: nothing. Out: `FACTS`; a test replaces what it is about. Must never: be what a test relies on unless it says so.
"""

from __future__ import annotations

from edgefast.proxy.metrics.exposition import AgentFacts

FACTS = AgentFacts(
    product_version="1.2.3",
    tls="OpenSSL 3.9.9",
    started_at=1e9,
    table_version="abcdef0123",
    table_age=1.5,
    table_resources=7,
    reloads=3,
    problems=2,
    refused=1,
    ready=True,
    draining=False,
    workers=2,
    workers_alive=1,
    restarts=1,
    arena_used=640,
    arena_retired=64,
    last_good_failures=0,
    last_good_age=9.0,
    expiries={"secret/default/web": 1893456000.0},
    store_troubles={("redis:6379", "down"): 2},
    token_requests={("default/api", "login", "ok"): 7},
    keys_failing={("default/api", "idp"): True, ("default/api", "other"): False},
)
