"""Auth interface of a stream: no message of a peer is processed before its credential determines its fleet.

In: a call's connection and metadata; then every message.
Out: `Admission` (fleet, end of validity), decoded requests; else Refused. Everything that is not
explicitly allowed is refused: one method for each port, one kind of credential, one message type.
Must never: trust a peer's own statement: the credential determines the fleet, and the node must
match it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from controller.xds_server.refusal import Refused
from edgefast.xds.messages import Node, ProtocolError, Request, decode_request

__all__ = ["Admission", "Connection", "RejectAll", "StreamAuth", "admit_request"]


#: Pod names are made of the workload's, cut to this many characters, and a random end (Kubernetes, generateName).
_POD_PREFIX = 58
#: What a pod's name is made of (RFC 1123). It goes into logs and statuses.
_POD_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", re.ASCII)


class Connection(msgspec.Struct, frozen=True):
    """What is known of a call before any of its messages is read."""

    method: str
    peer: str  # address, for the log
    metadata: Sequence[tuple[str, str | bytes]] = ()
    certificate: bytes = b""  # the peer's, PEM, verified by TLS; b"" for none

    def __repr__(self) -> str:
        return f"Connection({self.method!r}, {self.peer!r})"


class Admission(Protocol):
    """A credential that was found good, for as long as its stream lasts."""

    @property
    def fleet(self) -> str:
        """The fleet that the credential names; CONTROLLER for another replica."""

    @property
    def pod(self) -> str:
        """The one pod that may show the credential, "" when it is any of the fleet's."""

    @property
    def expires(self) -> float:
        """Unix time at which the stream has to end."""

    async def check(self) -> None:
        """Look again whether the credential is good; raises Refused. Cheap: it is asked before every message."""

    def check_node(self, node: Node) -> None:
        """Raise Refused when the credential is not one of this node."""


class StreamAuth(Protocol):
    """One kind of credential."""

    async def admit(self, connection: Connection) -> Admission:
        """Return what the credential allows; raises Refused."""


async def admit_request(admission: Admission, data: bytes) -> Request:
    """Return the request that these bytes are; raises Refused."""
    await admission.check()
    try:
        request = decode_request(data)
    except ProtocolError as error:
        raise Refused("message", "INVALID_ARGUMENT", str(error)) from None
    if request.node is not None:
        admission.check_node(request.node)
    return request


def check_pod_of(fleet: str, node: Node) -> None:
    """Raise Refused unless a node's id can be the name of a pod of this fleet."""
    prefix = (fleet.rpartition("/")[2] + "-")[:_POD_PREFIX]
    if not node.id.startswith(prefix) or not _POD_NAME.fullmatch(node.id):
        raise Refused(
            "node", "PERMISSION_DENIED", "the node is not a pod of the credential's fleet"
        )


class RejectAll:
    """Refuses every call and names the port to use instead."""

    async def admit(self, connection: Connection) -> Admission:
        """Raise Refused for every call (`StreamAuth`)."""
        raise Refused(
            "closed",
            "PERMISSION_DENIED",
            "tokens are not accepted in Controller Namespace mode; use the fleet's certificate "
            "at port 18000",
        )
