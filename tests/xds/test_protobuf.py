"""The messages of the stream are those of xDS: bytes that envoy.service.discovery.v3 of the published package wrote."""

from __future__ import annotations

from edgefast.xds.protobuf import DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node, Status

REQUEST = bytes.fromhex(
    "0a240a01781a160a140a07776f726b65727312091100000000000000403201653a0176520166"
    "1201741a012a2201752a060a016112013132016e3a05080312016d"
)
RESPONSE = bytes.fromhex("0a0173120e0a017612060a01741201761a01612201742a016e320172")


def test_a_request() -> None:
    request = DeltaDiscoveryRequest(
        type_url="t",
        resource_names_subscribe=["*"],
        resource_names_unsubscribe=["u"],
        initial_resource_versions={"a": "1"},
        response_nonce="n",
        node=Node(id="x", user_agent_name="e", user_agent_version="v", client_features=["f"]),
        error_detail=Status(code=3, message="m"),
    )
    request.node.metadata.update({"workers": 2})
    assert request.SerializeToString(deterministic=True) == REQUEST
    assert DeltaDiscoveryRequest.FromString(REQUEST) == request


def test_a_response() -> None:
    response = DeltaDiscoveryResponse(
        type_url="t", nonce="n", system_version_info="s", removed_resources=["r"]
    )
    one = response.resources.add(name="a", version="v")
    one.resource.type_url, one.resource.value = "t", b"v"
    assert response.SerializeToString(deterministic=True) == RESPONSE
    assert DeltaDiscoveryResponse.FromString(RESPONSE) == response
