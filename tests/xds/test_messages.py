"""The wire: what is put together of cached bytes reads as what a whole encoding would, and nothing else is believed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.diagnostics.reasons.word import Word
from edgefast.table.shards import RESOURCE_LIMIT, TYPES, Resource, make_resource
from edgefast.xds import protobuf
from edgefast.xds.limits import (
    MESSAGE_FILL,
    MESSAGE_LIMIT,
    REASON_LIMIT,
    REFUSALS_LIMIT,
    TEXT_LIMIT,
    TROUBLES_LIMIT,
)
from edgefast.xds.messages import (
    COMMIT,
    TABLE,
    TYPE_URLS,
    Node,
    ProtocolError,
    Request,
    Response,
    cut_items,
    cut_names,
    decode_request,
    decode_response,
    encode_commit,
    encode_item,
    encode_opening,
    encode_request,
    encode_response,
)
from edgefast.xds.proxy_problems import ProxyProblem, find_proxy_problems
from edgefast.xds.rejections import MORE, Refused, decode_refusals, encode_refusals

pytestmark = pytest.mark.pure

NODE = Node("edge-1", formats=("aa", "bb"), version="1.0", workers=3)
RESOURCES = st.lists(
    st.builds(make_resource, st.just("cluster"), st.text(min_size=1, max_size=20), st.binary())
)


def test_type_urls_are_those_of_the_architecture() -> None:
    assert list(TYPE_URLS) == [*TYPES, "commit", "ticket_keys"]
    assert {url.rpartition(".")[2] for url in TYPE_URLS.values()} == {
        "Secret",
        "LimitStore",
        "Proxies",
        "Cluster",
        "Policy",
        "Fragment",
        "VirtualHost",
        "StreamRoute",
        "Listener",
        "Commit",
        "TicketKeys",
    }


@given(RESOURCES, st.lists(st.text(max_size=20)))
def test_joined_bytes_are_the_encoding_of_the_whole(resources, removed) -> None:
    data = encode_response("cluster", map(encode_item, resources), removed, "7", "v")
    told = decode_response(data)
    assert (told.type, told.nonce, told.version) == ("cluster", "7", "v")
    assert list(told.puts) == resources
    assert list(told.removed) == removed
    whole = protobuf.DeltaDiscoveryResponse.FromString(data)
    assert decode_response(whole.SerializeToString()) == told


def test_an_item_is_encoded_once_for_all_streams() -> None:
    item = encode_item(make_resource("secret", "a", b"x" * 1000))
    one, other = (encode_response("secret", [item], [], nonce, "v") for nonce in "12")
    assert one.endswith(item) and other.endswith(item)


def test_a_commit_is_its_version_and_nothing_else() -> None:
    told = decode_response(encode_commit("abc", "9"))
    assert (told.type, told.version, told.nonce) == (COMMIT, "abc", "9")
    assert not told.puts
    assert told.commits
    with pytest.raises(ProtocolError, match="commit"):
        decode_response(encode_response(COMMIT, [], ["x"], "9", "abc"))
    with pytest.raises(ProtocolError, match="commit"):
        decode_response(encode_response(COMMIT, [], ["x"], "9", "abc", commits=True))


def test_the_last_response_of_a_batch_commits() -> None:
    one = make_resource("cluster", "a", b"x")
    put = encode_response("cluster", [encode_item(one)], [], "1", "abc", commits=True)
    assert decode_response(put) == Response(
        type="cluster", puts=(one,), nonce="1", version="abc", commits=True
    )
    gone = decode_response(encode_response("cluster", [], ["a"], "1", "abc", commits=True))
    assert (gone.removed, gone.version, gone.commits) == (("a",), "abc", True)
    assert not decode_response(encode_response("cluster", [encode_item(one)], [], "1", "v")).commits
    # Nothing comes after it, and it holds nothing.
    for wrong in (
        put + encode_item(one),
        put + encode_item(Resource(COMMIT, TABLE, "abc", b"")),
        encode_response("cluster", [encode_item(Resource(COMMIT, "b", "v", b""))], [], "1", "v"),
        encode_response("cluster", [encode_item(Resource(COMMIT, TABLE, "v", b"y"))], [], "1", "v"),
        encode_response("cluster", [encode_item(make_resource("secret", "a", b""))], [], "1", "v"),
    ):
        with pytest.raises(ProtocolError):
            decode_response(wrong)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff",
        b"",
        encode_response("cluster", [], ["x"], "", "v"),
        encode_response("cluster", [encode_item(make_resource("secret", "a", b""))], [], "1", ""),
        encode_response("cluster", [], ["x" * (TEXT_LIMIT + 1)], "1", ""),
        protobuf.DeltaDiscoveryResponse(type_url="x", nonce="1").SerializeToString(),
    ],
)
def test_what_is_no_response_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_response(data)


def test_messages_are_filled_and_one_resource_may_be_alone() -> None:
    small = [encode_item(make_resource("cluster", f"c{n}", bytes(1000))) for n in range(3000)]
    large = encode_item(make_resource("cluster", "large", bytes(RESOURCE_LIMIT)))
    parts = list(cut_items([*small, large, *small]))
    assert [item for part in parts for item in part] == [*small, large, *small]
    assert [large] in parts
    assert all(sum(map(len, part)) <= MESSAGE_FILL for part in parts if part != [large])
    per_part = MESSAGE_FILL // len(small[0])  # a part is filled as far as whole items go
    assert len(parts) <= 2 * (-(-3000 // per_part)) + 1
    assert len(encode_response("cluster", [large], [], "1", "v" * 32)) < MESSAGE_LIMIT
    names = [f"{n}".zfill(100) for n in range(20_000)]
    cut = list(cut_names(names))
    assert [name for part in cut for name in part] == names
    assert all(len(encode_response("listener", [], p, "1", "")) <= MESSAGE_FILL + 100 for p in cut)
    assert len(cut) <= 20_000 * 110 // MESSAGE_FILL + 2
    assert list(cut_items([])) == []


def test_an_opening_says_who_and_what_is_held() -> None:
    held = {("secret", "a"): "1", ("listener", "b"): "2"}
    told = [decode_request(part) for part in encode_opening(NODE, held, "v")]
    assert [one.type for one in told] == [*TYPES, COMMIT]
    assert [one.node for one in told] == [NODE, *([None] * len(TYPES))]
    assert all(one.subscribe == ("*",) and not one.nonce and not one.refused for one in told)
    assert told[0].held == {"a": "1"}
    assert told[-2].held == {"b": "2"}
    assert told[-1].held == {TABLE: "v"}
    assert [one.held for one in map(decode_request, encode_opening(NODE, {}, ""))] == [{}] * (
        len(TYPES) + 1
    )


def test_an_opening_that_holds_much_is_cut() -> None:
    held = {("virtual_host", f"{n}".zfill(200)): "0" * 16 for n in range(20_000)}
    parts = list(encode_opening(NODE, held, "v"))
    told = [decode_request(part) for part in parts]
    assert all(len(part) <= MESSAGE_FILL + 1000 for part in parts)
    joined = [name for one in told if one.type == "virtual_host" for name in one.held]
    assert sorted(joined) == sorted(name for _, name in held)
    assert [one.node is not None for one in told] == [True] + [False] * (len(told) - 1)


def test_answers() -> None:
    bad = (Refused("cluster", "x: y", "no such thing"), Refused(COMMIT, TABLE, "late"))
    told = decode_request(encode_request(Request(type=COMMIT, nonce="3", refused=bad)))
    assert told.nonce == "3"
    assert told.whole == "late"
    ack = decode_request(encode_request(Request(type="cluster", nonce="3")))
    assert (ack.refused, ack.whole, ack.node) == ((), "", None)


TROUBLE = ProxyProblem(
    "EdgeGateway", "", "", "rateLimit.backend", "NotCounted", "it does not count"
)


def test_troubles_come_with_the_node_and_refuse_nothing() -> None:
    request = Request(type=COMMIT, nonce="3", node=NODE, troubles=(TROUBLE,))
    told = decode_request(encode_request(request))
    assert (told.troubles, told.node, told.refused) == ((TROUBLE,), NODE, ())
    assert not decode_request(encode_request(Request(type=COMMIT, nonce="3"))).troubles


def test_troubles_are_bounded_and_errors_come_first() -> None:
    long = Problem(
        ObjectRef("Service", "n" * 300, "x" * 300),
        "p" * 5000,
        "EndpointsNotFound",
        "m" * 100_000,
        severity="warning",
    )
    down = Problem(
        ObjectRef("EdgeGateway", "", ""), "rateLimit.backend", "NotCounted", "it is down"
    )
    many = tuple(find_proxy_problems((*[long] * 1000, down)))
    told = decode_request(
        encode_request(Request(type=COMMIT, nonce="3", node=NODE, troubles=many))
    ).troubles
    assert len(told) == TROUBLES_LIMIT
    assert told[0].problem() == down
    assert {len(one.message) for one in told[1:]} == {REASON_LIMIT}
    assert {(len(one.namespace), len(one.name), len(one.path)) for one in told[1:]} == {(253,) * 3}
    left = 1001 - TROUBLES_LIMIT
    assert told[-1].message.endswith(
        f"; and {left} more problems, which the status of the proxy lists"
    )


@pytest.mark.parametrize("kind", ["Gateway", "HTTPRoute"])
def test_a_proxy_has_no_word_about_what_others_serve_too(kind: str) -> None:
    foreign = msgspec.structs.replace(TROUBLE, kind=kind)
    request = Request(type=COMMIT, nonce="3", node=NODE, troubles=(foreign, TROUBLE))
    assert decode_request(encode_request(request)).troubles == (TROUBLE,)
    about = Problem(ObjectRef(kind, "a", "b"), "", "NotCounted", "")
    assert not list(find_proxy_problems([about]))


@pytest.mark.parametrize(
    ("kind", "reason", "told"),
    [
        ("SecurityPolicy", "KeysNotFetched", True),
        ("SecurityPolicy", "EndpointsNotFound", False),
        ("Service", "KeysNotFetched", False),
    ],
)
def test_of_a_policy_a_proxy_tells_that_its_keys_cannot_be_fetched(
    kind: str, reason: Word, told: bool
) -> None:
    about = Problem(ObjectRef(kind, "a", "b"), "spec.jwt", reason, "answered 404")
    assert bool(list(find_proxy_problems([about]))) == told
    sent = msgspec.structs.replace(TROUBLE, kind=kind, reason=reason)
    request = Request(type=COMMIT, nonce="3", node=NODE, troubles=(sent,))
    assert bool(decode_request(encode_request(request)).troubles) == told


def told_with(text: str) -> tuple[ProxyProblem, ...]:
    told = protobuf.DeltaDiscoveryRequest(type_url=TYPE_URLS[COMMIT], response_nonce="1")
    told.node.id = "pod"
    told.node.metadata.update({"troubles": text})
    return decode_request(told.SerializeToString()).troubles


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "1",
        '["NotCounted"]',
        '[["EdgeGateway","","","","NotCounted"]]',
        '[["EdgeGateway","","","","Another","said"]]',
        '[["EdgeGateway","","","","NotCounted","said","fatal"]]',
        msgspec.json.encode([msgspec.structs.replace(TROUBLE, message="x" * 401)]).decode(),
        "[" * 100_000,
    ],
)
def test_troubles_of_another_form_are_none_and_cost_no_stream(text: str) -> None:
    assert not told_with(text)


def test_troubles_of_another_release_hide_no_others() -> None:
    newer = ["EdgeGateway", "", "", "", "NotCounted", "said", "error", "a field that comes later"]
    texts = ["of another form", newer, *[TROUBLE] * TROUBLES_LIMIT]
    told = told_with(msgspec.json.encode(texts).decode())
    assert [one.message for one in told[:2]] == ["said", TROUBLE.message]
    assert len(told) == TROUBLES_LIMIT - 1


def test_an_error_without_our_lines_still_refuses() -> None:
    told = protobuf.DeltaDiscoveryRequest(type_url=TYPE_URLS[COMMIT], response_nonce="1")
    told.error_detail.message = "something"
    assert decode_request(told.SerializeToString()).whole == "something"
    told.error_detail.message = ""
    assert decode_request(told.SerializeToString()).refused
    told.error_detail.message = "x" * 1_000_000  # it is kept for as long as the node is
    assert decode_request(told.SerializeToString()).whole == "x" * REASON_LIMIT


@pytest.mark.parametrize("node", ["", "x" * 254])
def test_a_node_has_a_name(node: str) -> None:
    data = encode_request(Request(type="secret", node=Node(node)))
    with pytest.raises(ProtocolError, match="id"):
        decode_request(data)


@given(st.binary(max_size=200))
def test_bytes_are_messages_or_refused(data: bytes) -> None:
    for decode in (decode_request, decode_response):
        try:
            decode(data)
        except ProtocolError:
            pass


# --- refusals ---------------------------------------------------------------------------------------


def test_refusals_read_back() -> None:
    refused = (Refused("cluster", "ns/a:80", "b: c"), Refused("secret", "s", "d\ne"))
    assert decode_refusals(encode_refusals(refused)) == (
        refused[0],
        Refused("secret", "s", "d e"),
    )
    assert encode_refusals([]) == ""
    assert decode_refusals("") == ()


def test_refusals_are_bounded_and_none_is_lost_silently() -> None:
    many = [Refused("cluster", f"c{n:05}", "x" * 5000) for n in range(5000)]
    told = decode_refusals(encode_refusals([*many, Refused(COMMIT, TABLE, "late: 1 of 2")]))
    assert len(told) == REFUSALS_LIMIT + 1
    assert told[0] == Refused(COMMIT, TABLE, "late: 1 of 2")
    assert told[-1].name == MORE and told[-1].reason.startswith("4901 ")
    assert max(len(one.reason) for one in told) == REASON_LIMIT


def test_types_that_there_are_not_are_not_believed() -> None:
    """They would be labels of a metric."""
    text = "invented-7 a: b\ncluster a: b\n" + "cluster " + "n" * 10_000 + ": c"
    one, other = decode_refusals(text)
    assert one == Refused("cluster", "a", "b")
    assert other.name == "n" * TEXT_LIMIT
    told = protobuf.DeltaDiscoveryRequest(type_url=TYPE_URLS[COMMIT], response_nonce="1")
    told.error_detail.message = "invented-7 a: b"
    assert decode_request(told.SerializeToString()).whole == "invented-7 a: b"


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    decode_refusals(text)
