"""Ways in which a store fails, each with what brings it back, done to a real redis-server.

In: a server, and a client with a connection to it that lives through most of them. Out: `FAILURES`. Each begins at once
and lasts until it is ended: no test has to hurry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rate_limit.servers import RedisServer
from wire.harness.ports import free_port
from wire.limits.proxy import PASSWORD

Step = Callable[[RedisServer, Any], Any]


@dataclass(frozen=True)
class Failure:
    """`silent`: the store takes questions and does not answer. Nobody asks after three failures, whatever they are."""

    name: str
    begin: Step
    end: Step
    silent: bool = False


def _cut(client: Any) -> None:
    """End all connections but this one."""
    client.client_kill_filter(_type="normal", skipme=True)


def _refuse(_: RedisServer, client: Any) -> None:
    client.config_set("maxclients", 1)
    _cut(client)


def _change_password(_: RedisServer, client: Any) -> None:
    client.config_set("requirepass", "another")
    _cut(client)


FAILURES = (
    Failure("stopped", lambda server, _: server.kill(), lambda server, _: server.start()),
    Failure("frozen", lambda server, _: server.pause(), lambda server, _: server.resume(), silent=True),
    Failure(
        "slow to write",  # it still answers other commands
        lambda _, client: client.execute_command("CLIENT", "PAUSE", "600000", "WRITE"),
        lambda _, client: client.execute_command("CLIENT", "UNPAUSE"),
        silent=True,
    ),
    Failure(
        "refusing connections",
        _refuse,
        lambda _, client: client.config_set("maxclients", 10_000),
    ),
    Failure(
        "another password",
        _change_password,
        lambda _, client: client.config_set("requirepass", PASSWORD),
    ),
    Failure(
        "a replica",
        lambda _, client: client.replicaof("127.0.0.1", free_port()),
        lambda _, client: client.replicaof("NO", "ONE"),
    ),
    Failure(
        "out of memory",
        lambda _, client: client.config_set("maxmemory", 1),
        lambda _, client: client.config_set("maxmemory", 0),
    ),
    Failure(
        "without the right to count",
        lambda _, client: client.execute_command("ACL", "SETUSER", "default", "-evalsha"),
        lambda _, client: client.execute_command("ACL", "SETUSER", "default", "+@all"),
    ),
)  # fmt: skip
