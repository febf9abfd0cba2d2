"""The `apiserver` fixture: what other tests rely on is so."""

from __future__ import annotations

import pytest

from cluster.world.api import Api, ApiError, Server
from cluster.world.apiserver import ApiServer


def test_nobody_is_refused(apiserver: ApiServer) -> None:
    server = apiserver.plane.server
    with pytest.raises(ApiError) as refused:
        Api(Server(server.host, server.port, server.ca)).get("/readyz")
    assert refused.value.status == 401
