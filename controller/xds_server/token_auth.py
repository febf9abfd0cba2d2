"""TokenAuth: server TLS and a ServiceAccount token. The ServiceAccount determines the fleet (Gateway Namespace mode, spec section 5).

In: the call's `authorization: Bearer` metadata.
Out: an admission that ends with the token, is reviewed again when the last review is old, and
belongs to the one pod to which the token is bound.
Must never: keep the token outside the admission of its own stream, or end a stream because the API
server is not reachable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from controller.certs.identity import fleet_key
from controller.xds_server.auth_interface import Connection, check_pod_of
from controller.xds_server.limits import RECHECK_DEADLINE, REVIEW_REFUSED_SECONDS
from controller.xds_server.refusal import Refused
from controller.xds_server.tokens import Subject, Tokens
from edgefast.xds.messages import Node

__all__ = ["TokenAuth"]

_SCHEME = "bearer "


class TokenAuth:
    """Admits proxies by their ServiceAccount token."""

    def __init__(self, tokens: Tokens, clock: Callable[[], float]) -> None:
        """`clock`: Unix time."""
        self._tokens = tokens
        self._clock = clock

    async def admit(self, connection: Connection) -> _Admission:
        """Return what the credential allows (`StreamAuth`); raises Refused."""
        message = [value for key, value in connection.metadata if key == "authorization"]
        if not message:
            raise Refused("no_credential", "UNAUTHENTICATED", "a token is required")
        value = message[0]
        if len(message) != 1 or not isinstance(value, str) or not value.lower().startswith(_SCHEME):
            raise Refused("token", "UNAUTHENTICATED", "exactly one bearer token is required")
        token = value[len(_SCHEME) :].strip()
        return _Admission(token, await self._tokens.subject(token), self._tokens, self._clock)


class _Admission:
    def __init__(
        self, token: str, subject: Subject, tokens: Tokens, clock: Callable[[], float]
    ) -> None:
        self.fleet = fleet_key(subject.namespace, subject.account)
        self.pod = subject.pod
        self.expires = subject.expires
        self._token = token
        self._subject = subject
        self._tokens = tokens
        self._clock = clock
        self._quiet_until = 0.0  # Unix time; the API server did not answer shortly before

    async def check(self) -> None:
        now = self._clock()
        if now >= self.expires:
            raise Refused("expired", "UNAUTHENTICATED", "the token has expired")
        if now < self._quiet_until:
            return
        try:
            async with asyncio.timeout(RECHECK_DEADLINE):
                subject = await self._tokens.subject(self._token)
        except TimeoutError:
            self._quiet_until = self._clock() + REVIEW_REFUSED_SECONDS
            return
        except Refused as refused:
            # An API server that is away must not take the tables from proxies that were admitted.
            if refused.cause != "review_failed":
                raise
            self._quiet_until = self._clock() + REVIEW_REFUSED_SECONDS
            return
        if subject != self._subject:
            raise Refused("token", "UNAUTHENTICATED", "the token now belongs to another subject")

    def check_node(self, node: Node) -> None:
        check_pod_of(self.fleet, node)
        if node.id != self._subject.pod:
            raise Refused(
                "node", "PERMISSION_DENIED", "the token is bound to another pod than the node"
            )
