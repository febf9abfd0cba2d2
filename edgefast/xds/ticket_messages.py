"""Session ticket keys on the stream: a separate response beside the table, for all proxies of a fleet.

In: `TicketSecrets`.
Out: wire bytes, and values of wire bytes; ProtocolError for invalid bytes. The secrets are not part
of the table: no version, dump or file on disk contains them. The server sends them to proxies that
request them (`Node.tickets`), before their first table and whenever they change. Proxies send no
answer.
Must never: show a secret.
"""

from __future__ import annotations

import msgspec

from edgefast.table.shards import Resource
from edgefast.xds.messages import TICKETS, ProtocolError, Response, encode_item, encode_response
from edgefast.xds.ticket_secrets import TicketSecrets

__all__ = ["SECRET", "decode_given", "encode_given"]

#: Bytes of a secret.
SECRET = 32
#: Nobody answers, but a response has a nonce.
_NONCE = "tickets"
_NAME = "keys"


_DECODER = msgspec.msgpack.Decoder(TicketSecrets)


def encode_given(given: TicketSecrets) -> bytes:
    """Return the response that says a fleet's secrets."""
    item = encode_item(Resource(TICKETS, _NAME, "", msgspec.msgpack.encode(given)))
    return encode_response(TICKETS, (item,), (), _NONCE, "")


def decode_given(response: Response) -> TicketSecrets:
    """Read the secrets of a response of type TICKETS; raises ProtocolError."""
    try:
        (one,) = response.puts
        given = _DECODER.decode(one.data)
    except (ValueError, msgspec.DecodeError):
        raise ProtocolError("keys of session tickets cannot be read") from None
    sound = len(given.current) == len(given.next) == SECRET and len(given.previous) in (0, SECRET)
    if not sound or len({given.previous, given.current, given.next}) != 3:
        raise ProtocolError("keys of session tickets have another type")
    return given
