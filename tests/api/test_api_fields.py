"""Every field and word of the Gateway API, as its CRDs list them, is one that a Struct has or that is said to be unserved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from edgefast.api.decode.decode import decode_api_object
from edgefast.api.kinds import EXPERIMENTAL_GROUP, KINDS
from edgefast.api.limits import MAX_UNSERVED
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.model.shape import Shape, shape_of
from edgefast.api.model.unsupported_fields import PLACES, UNSERVED
from edgefast.translate.settings import RELEASES

LIST = Path(__file__).with_name("apifields.txt")
#: Of the list, (kind, path).
REQUIRED: set[tuple[str, str]] = set()


def _read_list() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the words of each field, by kind and path."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    kind = ""
    for line in LIST.read_text().splitlines():
        text = line.partition("#")[0].rstrip()
        if text.startswith(" "):
            path, _, words = text.strip().partition(" = ")
            found[kind][path.removesuffix(" !")] = tuple(words.split())
            if path.endswith(" !"):
                REQUIRED.add((kind, path.removesuffix(" !")))
        elif text:
            kind = text
            found[kind] = {}
    return found


def _fields_of(shape: Shape, at: str = "") -> Iterator[tuple[str, Shape]]:
    """Give the path and what it takes of each field of a Struct."""
    for one in shape.fields:
        below, path = one.shape, f"{at}.{one.name}" if at else one.name
        inside = path
        while below.kind == "list":
            assert below.item is not None
            below, inside = below.item, f"{inside}[]"
        yield path, below
        yield from _fields_of(below, inside)


LISTED = _read_list()
KINDS_OF_THE_API = [
    info for info in KINDS.values() if info.group in (GATEWAY_GROUP, EXPERIMENTAL_GROUP)
]
STRUCTS = {info.kind: dict(_fields_of(shape_of(info.struct))) for info in KINDS_OF_THE_API}


def _unserved_of(kind: str, path: str) -> list[str]:
    return [
        one
        for one in UNSERVED.get(kind, {})
        if path == one or path.startswith((f"{one}.", f"{one}["))
    ]


@pytest.mark.pure
@pytest.mark.parametrize("kind", LISTED)
def test_every_field_is_served_or_said_to_be_unserved(kind: str) -> None:
    """A field that neither has was brought by a new release: give it a Struct, or an entry in UNSERVED."""
    unclassified = [
        path for path in LISTED[kind] if (path in STRUCTS[kind]) == bool(_unserved_of(kind, path))
    ]
    assert unclassified == []


@pytest.mark.pure
@pytest.mark.parametrize("kind", LISTED)
def test_every_word_is_known(kind: str) -> None:
    """A word that no Struct takes was brought by a new release; translation refuses it until it is served."""
    unknown = {
        path: set(words) - set(map(str, shape.enum))
        for path, words in LISTED[kind].items()
        if (shape := STRUCTS[kind].get(path)) is not None
        and (shape.enum or words)
        and not set(words) <= set(map(str, shape.enum))
    }
    assert unknown == {}


def _required_of(shape: Shape, at: str = "") -> Iterator[str]:
    for one in shape.fields:
        path = f"{at}.{one.name}" if at else one.name
        if one.required:
            yield path
        below, inside = one.shape, path
        while below.kind == "list":
            assert below.item is not None
            below, inside = below.item, f"{inside}[]"
        yield from _required_of(below, inside)


@pytest.mark.pure
@pytest.mark.parametrize("kind", LISTED)
def test_nothing_is_required_that_a_release_does_not_ask_for(kind: str) -> None:
    """An object without such a field could not be built: the one before it would stay in service."""
    (struct,) = (info.struct for info in KINDS_OF_THE_API if info.kind == kind)
    ours = [path for path in _required_of(shape_of(struct)) if not path.startswith("metadata")]
    assert [path for path in ours if (kind, path) not in REQUIRED] == []


@pytest.mark.pure
def test_no_field_is_of_our_own_making() -> None:
    assert {info.kind for info in KINDS_OF_THE_API} == LISTED.keys()
    for kind, fields in STRUCTS.items():
        ours = [path for path in fields if not path.startswith("metadata")]
        assert [path for path in ours if path not in LISTED[kind]] == []
        assert [path for path in UNSERVED.get(kind, {}) if path not in LISTED[kind]] == []


@pytest.mark.pure
def test_the_list_is_of_the_releases_that_are_supported() -> None:
    releases = LIST.read_text().splitlines()[1].removeprefix("# ").partition(";")[0].split(", ")
    assert tuple(one.rpartition(".")[0] for one in releases) == RELEASES


@pytest.mark.pure
def test_every_kind_that_decides_has_places() -> None:
    """Kinds of Kubernetes itself are not judged: nothing of ours depends on what is new in them."""
    ours = {
        info.kind for info in KINDS.values() if info.group.endswith(("networking.k8s.io", ".io"))
    }
    of_kubernetes = {"EndpointSlice", "ClusterTrustBundle", "Ingress", "IngressClass"}
    assert PLACES.keys() == ours - of_kubernetes
    assert all(places[-1][0] == "" and places[-1][1] == "object" for places in PLACES.values())


@pytest.mark.pure
def test_very_many_fields_close_all_of_an_object() -> None:
    rules = [{f"new{at}": 1} for at in range(MAX_UNSERVED + 9)]
    raw = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"rules": rules}}
    found = decode_api_object(raw, "HTTPRoute").unserved
    assert len(found) == MAX_UNSERVED + 1
    assert [one.closes for one in found[-2:]] == ["rule", "object"]


@pytest.mark.pure
def test_no_document_writes_what_the_decoder_notes() -> None:
    forged = [{"path": "spec", "closes": "nothing", "known": True}]
    raw = {"metadata": {"name": "web", "namespace": "default"}, "spec": {}, "unserved": forged}
    for one in (raw, msgspec.json.encode(raw)):
        (found,) = decode_api_object(one, "HTTPRoute").unserved
        assert (found.path, found.closes) == ("unserved", "object")
    backend = decode_api_object({**raw, "spec": {"ports": []}}, "Service")
    assert backend.unserved == ()
