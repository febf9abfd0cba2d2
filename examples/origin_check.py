"""The authorisation service of the examples as one of gRPC: envoy.service.auth.v3.Authorization/Check, by hand.

In: the bytes of a CheckRequest. Out: those of a CheckResponse, which says what origin_auth.py does. It is for trying: a real one has its
messages from Envoy's files (envoy/service/auth/v3/external_auth.proto), and reads them whole.
"""

from __future__ import annotations

from origin_auth import decide

PATH = "/envoy.service.auth.v3.Authorization/Check"
#: The entry of a map that names it; the value's length and the value come next.
_AUTHORIZATION = b"\x0a\x0dauthorization\x12"


def check(request: bytes) -> bytes:
    """Answer for one request."""
    _, _, rest = request.partition(_AUTHORIZATION)
    shown = {"authorization": rest[1 : 1 + rest[0]].decode()} if rest and rest[0] < 128 else {}
    status, headers = decide(shown)
    lines = b"".join(_field(2, _field(1, _pair(*one))) for one in headers)
    if status == 200:
        return _field(1, b"") + _field(3, lines)  # status OK, ok_response
    return _field(1, b"\x08\x10") + _field(2, _field(1, b"\x08\x91\x03") + lines)  # 16, 401


def _field(number: int, data: bytes) -> bytes:
    assert len(data) < 128, "a longer one has a length of two bytes"
    return bytes([number << 3 | 2, len(data)]) + data


def _pair(name: str, value: str) -> bytes:
    return _field(1, name.encode()) + _field(2, value.encode())
