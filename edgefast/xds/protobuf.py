"""The protobuf messages of the stream, with the field numbers of xDS (envoy.service.discovery.v3).

In: nothing.
Out: message classes. The wire format has field numbers and types but no message names. These
messages therefore use their own package and do not conflict with other protobuf packages of the
process. (The published xDS package contains an old copy of OpenTelemetry's messages, and the
package that is installed last breaks the other one.)
Must never: give a number to a field that differs from xDS.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import any_pb2, descriptor_pool, message_factory, struct_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

__all__ = ["DeltaDiscoveryRequest", "DeltaDiscoveryResponse", "Node", "Status"]

_PACKAGE = "edgefast.xds"
_TEXT = FieldDescriptorProto.TYPE_STRING
_INT32 = FieldDescriptorProto.TYPE_INT32
_PAIRS = "map<string, string>"

#: Message -> (field, number, type or name of a message, whether it is repeated).
_MESSAGES: dict[str, tuple[tuple[str, int, int | str, bool], ...]] = {
    # envoy.config.core.v3
    "Node": (
        ("id", 1, _TEXT, False),
        ("metadata", 3, "google.protobuf.Struct", False),
        ("user_agent_name", 6, _TEXT, False),
        ("user_agent_version", 7, _TEXT, False),
        ("client_features", 10, _TEXT, True),
    ),
    # google.rpc
    "Status": (
        ("code", 1, _INT32, False),
        ("message", 2, _TEXT, False),
        ("details", 3, "google.protobuf.Any", True),
    ),
    # envoy.service.discovery.v3
    "Resource": (
        ("version", 1, _TEXT, False),
        ("resource", 2, "google.protobuf.Any", False),
        ("name", 3, _TEXT, False),
    ),
    "DeltaDiscoveryRequest": (
        ("node", 1, f"{_PACKAGE}.Node", False),
        ("type_url", 2, _TEXT, False),
        ("resource_names_subscribe", 3, _TEXT, True),
        ("resource_names_unsubscribe", 4, _TEXT, True),
        ("initial_resource_versions", 5, _PAIRS, True),
        ("response_nonce", 6, _TEXT, False),
        ("error_detail", 7, f"{_PACKAGE}.Status", False),
    ),
    "DeltaDiscoveryResponse": (
        ("system_version_info", 1, _TEXT, False),
        ("resources", 2, f"{_PACKAGE}.Resource", True),
        ("type_url", 4, _TEXT, False),
        ("nonce", 5, _TEXT, False),
        ("removed_resources", 6, _TEXT, True),
    ),
}


def _describe() -> FileDescriptorProto:
    file = FileDescriptorProto(
        name="edgefast/xds.proto",
        package=_PACKAGE,
        syntax="proto3",
        dependency=[any_pb2.DESCRIPTOR.name, struct_pb2.DESCRIPTOR.name],
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            many = FieldDescriptorProto.LABEL_REPEATED
            one = FieldDescriptorProto.LABEL_OPTIONAL
            reported = message.field.add(name=field, number=number, label=many if repeated else one)
            if isinstance(kind, int):
                reported.type = FieldDescriptorProto.Type.ValueType(kind)
                continue
            reported.type = FieldDescriptorProto.TYPE_MESSAGE
            if kind == _PAIRS:
                kind = f"{_PACKAGE}.{name}.{_add_pairs(message, field)}"
            reported.type_name = f".{kind}"
    return file


def _add_pairs(message: DescriptorProto, field: str) -> str:
    """Add the entry of a map; its name follows from the field's."""
    entry = message.nested_type.add(name=f"{field.title().replace('_', '')}Entry")
    entry.options.map_entry = True
    for name, number in (("key", 1), ("value", 2)):
        entry.field.add(
            name=name, number=number, type=_TEXT, label=FieldDescriptorProto.LABEL_OPTIONAL
        )
    return entry.name


descriptor_pool.Default().AddSerializedFile(_describe().SerializeToString())


def _class_of(name: str) -> Any:
    found = descriptor_pool.Default().FindMessageTypeByName(f"{_PACKAGE}.{name}")
    return message_factory.GetMessageClass(found)


Node = _class_of("Node")
Status = _class_of("Status")
DeltaDiscoveryRequest = _class_of("DeltaDiscoveryRequest")
DeltaDiscoveryResponse = _class_of("DeltaDiscoveryResponse")
