"""Envoy's messages of an authorisation service (envoy.service.auth.v3), field for field as far as tests need them, by protobuf's own library.

In: nothing. Out: message classes, once with text that has to be UTF-8 (what services have), once with any bytes in its place (what our
decoder reads). Must never: give a number to a field that Envoy does not give it.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

_Kind = FieldDescriptorProto.Type
_INT32, _INT64, _UINT32, _BOOL = (
    _Kind.TYPE_INT32,
    _Kind.TYPE_INT64,
    _Kind.TYPE_UINT32,
    _Kind.TYPE_BOOL,
)
_TEXT, _RAW = _Kind.TYPE_STRING, _Kind.TYPE_BYTES

#: Message -> (field, number, type or name of a message, "" once, "*" repeated, or the name of the oneof).
_MESSAGES: dict[str, tuple[tuple[str, int, Any, str], ...]] = {
    "SocketAddress": (("address", 2, _TEXT, ""), ("port_value", 3, _UINT32, "")),
    "Address": (("socket_address", 1, "SocketAddress", ""),),
    "Peer": (("address", 1, "Address", ""),),
    "Timestamp": (("seconds", 1, _INT64, ""), ("nanos", 2, _INT32, "")),
    "Pair": (("key", 1, _TEXT, ""), ("value", 2, _TEXT, "")),
    "HttpRequest": (
        ("id", 1, _TEXT, ""),
        ("method", 2, _TEXT, ""),
        ("headers", 3, "Pair", "*"),  # a map, on the wire
        ("path", 4, _TEXT, ""),
        ("host", 5, _TEXT, ""),
        ("scheme", 6, _TEXT, ""),
        ("query", 7, _TEXT, ""),
        ("fragment", 8, _TEXT, ""),
        ("size", 9, _INT64, ""),
        ("protocol", 10, _TEXT, ""),
        ("body", 11, _TEXT, ""),
        ("raw_body", 12, _RAW, ""),
    ),
    "Request": (("time", 1, "Timestamp", ""), ("http", 2, "HttpRequest", "")),
    "AttributeContext": (
        ("source", 1, "Peer", ""),
        ("destination", 2, "Peer", ""),
        ("request", 4, "Request", ""),
    ),
    "CheckRequest": (("attributes", 1, "AttributeContext", ""),),
    "Status": (("code", 1, _INT32, ""), ("message", 2, _TEXT, "")),
    "HttpStatus": (("code", 1, _INT32, ""),),
    "BoolValue": (("value", 1, _BOOL, ""),),
    "HeaderValue": (("key", 1, _TEXT, ""), ("value", 2, _TEXT, ""), ("raw_value", 3, _RAW, "")),
    "HeaderValueOption": (
        ("header", 1, "HeaderValue", ""),
        ("append", 2, "BoolValue", ""),
        ("append_action", 3, _INT32, ""),
        ("keep_empty_value", 4, _BOOL, ""),
    ),
    "QueryParameter": (("key", 1, _TEXT, ""), ("value", 2, _TEXT, "")),
    "DeniedHttpResponse": (
        ("status", 1, "HttpStatus", ""),
        ("headers", 2, "HeaderValueOption", "*"),
        ("body", 3, _TEXT, ""),
    ),
    "OkHttpResponse": (
        ("headers", 2, "HeaderValueOption", "*"),
        ("headers_to_remove", 5, _TEXT, "*"),
        ("response_headers_to_add", 6, "HeaderValueOption", "*"),
        ("query_parameters_to_set", 7, "QueryParameter", "*"),
        ("query_parameters_to_remove", 8, _TEXT, "*"),
    ),
    "CheckResponse": (
        ("status", 1, "Status", ""),
        ("denied_response", 2, "DeniedHttpResponse", "http_response"),
        ("ok_response", 3, "OkHttpResponse", "http_response"),
    ),
}


def _classes(package: str, text: Any) -> dict[str, Any]:
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, how in fields:
            told = message.field.add(name=field, number=number)
            told.label = (
                FieldDescriptorProto.LABEL_REPEATED
                if how == "*"
                else FieldDescriptorProto.LABEL_OPTIONAL
            )
            if isinstance(kind, str):
                told.type, told.type_name = _Kind.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                told.type = text if kind == _TEXT else kind
            if how not in ("", "*"):
                if not message.oneof_decl:
                    message.oneof_decl.add(name=how)
                told.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
        for name in _MESSAGES
    }


_WITH_TEXT = _classes("tests.check", _TEXT)
_WITH_BYTES = _classes("tests.check.raw", _RAW)
CheckRequest, CheckResponse = _WITH_TEXT["CheckRequest"], _WITH_TEXT["CheckResponse"]
RawCheckResponse = _WITH_BYTES["CheckResponse"]

APPEND, ADD_IF_ABSENT, OVERWRITE, OVERWRITE_IF_THERE = range(4)


def passing(
    *headers: tuple[str, str] | tuple[str, str, int],
    remove: tuple[str, ...] = (),
    answer: tuple[tuple[str, str] | tuple[str, str, int], ...] = (),
) -> bytes:
    """OK, and what is done to the request and to its answer."""
    made = CheckResponse()
    made.status.code = 0
    made.status.SetInParent()
    made.ok_response.SetInParent()
    _add(made.ok_response.headers, headers)
    made.ok_response.headers_to_remove.extend(remove)
    _add(made.ok_response.response_headers_to_add, answer)
    data: bytes = made.SerializeToString()
    return data


def denying(
    *headers: tuple[str, str], code: int = 7, status: int | None = None, body: str = ""
) -> bytes:
    """A denial; `status` None: without an answer for the client."""
    made = CheckResponse()
    made.status.code = code
    if status is not None:
        made.denied_response.status.code = status
        made.denied_response.body = body
        _add(made.denied_response.headers, headers)
    data: bytes = made.SerializeToString()
    return data


def _add(into: Any, headers: tuple[Any, ...]) -> None:
    for name, value, *action in headers:
        one = into.add()
        one.header.key, one.header.value = name, value
        if action:
            one.append_action = action[0]


def frame(message: bytes, flag: int = 0) -> bytes:
    """A message as gRPC has it on the wire."""
    return bytes([flag]) + len(message).to_bytes(4, "big") + message


def read_request(body: bytes) -> Any:
    """The question, from the bytes of a call."""
    assert body[0] == 0 and int.from_bytes(body[1:5], "big") == len(body) - 5
    return CheckRequest.FromString(body[5:])


def headers_of(asked: Any) -> dict[str, str]:
    """The map of headers; no key comes twice."""
    pairs = [(one.key, one.value) for one in asked.attributes.request.http.headers]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)
