"""What other projects' policies have here: the tables have every field that their types have, name fields of ours that there are,
and docs/guides/migrating/README.md is made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
import yaml

from edgefast.api.decode.decode import decode_documents
from edgefast.api.gateway.httproutefilter import HTTPRouteFilter
from edgefast.api.kinds import KINDS
from edgefast.api.migration.field_mapping import FieldMapping
from edgefast.api.migration.field_mappings import PROJECTS, describe_field, find_kind, hint_at
from edgefast.api.migration.foreign_policy import read_fields
from edgefast.api.migration.page import write_pages
from edgefast.api.model.unsupported_fields import UNSERVED
from tests.support.manifest import manifest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
FIELDS: dict[str, dict[str, list[str]]] = yaml.safe_load(
    (Path(__file__).parent / "data/foreign-fields.yaml").read_text()
)
OURS = {info.kind: info.struct for info in KINDS.values()}
FILTER = re.compile(r"\bfilters? ([A-Z]\w+)")
NAMED = re.compile(r"\b([A-Z]\w+) spec((?:\.\w+)+)")


def test_every_field_of_theirs_is_in_the_tables_and_no_other() -> None:
    tables = {one.title: {kind.kind: {*kind.fields} for kind in one.kinds} for one in PROJECTS}
    for project in PROJECTS:
        if (one := project.annotations) is not None:
            assert not one.access_policies.keys() & one.others.keys()
            tables[project.title][one.domain] = {*one.access_policies, *one.others}
    assert tables == {
        title: {kind: {*fields} for kind, fields in kinds.items()}
        for title, kinds in FIELDS.items()
    }


def all_rows() -> Iterator[tuple[str, FieldMapping]]:
    for project in PROJECTS:
        for kind in project.kinds:
            yield from (*kind.fields.items(), *kind.inner.items())
        if (one := project.annotations) is not None:
            yield from (*one.access_policies.items(), *one.others.items())


def all_said() -> Iterator[str]:
    yield from (one.said for _, one in all_rows())
    yield from (project.about for project in PROJECTS)


def structs_of(type_: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        yield type_
    for one in get_args(type_):
        yield from structs_of(one)


def test_fields_of_ours_are_there() -> None:
    found = [match for said in all_said() for match in NAMED.findall(said)]
    assert len(found) > 40
    for kind, path in found:
        structs = [OURS[kind]]
        for name in ("spec", *path.split(".")[1:]):
            fields = {
                field.encode_name: field.type
                for struct in structs
                for field in msgspec.structs.fields(struct)
            }
            assert name in fields, f"{kind} spec{path}"
            structs = list(structs_of(fields[name]))


def test_filters_that_are_named_are_there() -> None:
    filters = get_type_hints(HTTPRouteFilter)["type"]
    found = {one for said in all_said() for one in FILTER.findall(said)}
    assert len(found) > 5
    assert found <= {*get_args(filters)}


def test_what_is_not_here_says_why() -> None:
    for name, one in all_rows():
        assert one.said or one.place == "later", name


def test_fields_of_our_kinds_that_are_not_served_are_in_the_tables() -> None:
    """So that `check` and statuses name the replacement of each."""
    for kind in ("SecurityPolicy", "BackendTrafficPolicy", "HTTPRouteFilter"):
        for path in UNSERVED[kind]:
            said = describe_field(kind, path.replace("[]", "[3]"))
            assert said.startswith(("use ", "no equivalent")), (kind, path)
    for project in PROJECTS:
        for foreign in project.kinds:
            assert all(
                name.partition(".")[0].removesuffix("[]") in foreign.fields
                for name in foreign.inner
            )
    assert describe_field("SecurityPolicy", "spec.targetRef") == "use targetRefs: [...], a list"
    assert (
        describe_field("SecurityPolicy", "spec.nobody")
        == ""
        == describe_field("Gateway", "spec.tls")
    )


#: The page of the folder that people write.
WRITTEN = "ingress-nginx-afternoon.md"


def test_the_pages_are_made_of_the_tables(request: pytest.FixtureRequest) -> None:
    folder = ROOT / "docs/guides/migrating"
    if request.config.getoption("--update-goldens"):
        for name, text in write_pages().items():
            (folder / name).write_text(text)
    made = {path.name: path.read_text() for path in folder.iterdir() if path.name != WRITTEN}
    assert made == write_pages()


def test_a_hint_speaks_of_the_fields_that_are_set() -> None:
    said = hint_at(
        "gateway.envoyproxy.io", "SecurityPolicy", ("authorization", "csrf", "targetRefs")
    )
    assert "authorization: use SecurityPolicy spec.authorization" in said
    assert "csrf: no equivalent" in said
    assert "targetRefs" not in said and said.endswith("see edgefast docs migrating")
    assert "nobody: no equivalent" in hint_at("traefik.io", "Middleware", ("nobody",))
    assert hint_at("example.com", "SecurityPolicy", ("jwt",)) == ""


def test_a_document_keeps_the_names_of_its_fields_and_no_more() -> None:
    spec = {f"field{at:02}": {"secret": "x"} for at in range(100)}
    raw = manifest("Middleware many", {**spec, "nothing": None}, api="traefik.io/v1alpha1")
    (policy,) = decode_documents(yaml.safe_dump(raw).encode(), "a.yaml").policies
    assert len(policy.fields) == 32 and policy.targets == ()
    assert "secret" not in repr(policy)
    raw["kind"] = "Whatever"
    assert decode_documents(yaml.safe_dump(raw).encode(), "a.yaml").policies == ()


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"jwt": {"providers": [{"name": "a"}, {"recomputeRoute": True}]}}, True),
        ({"jwt": {"providers": [{}] * 63 + [{"recomputeRoute": False}]}}, True),
        ({"jwt": {"providers": [{}] * 64 + [{"recomputeRoute": True}]}}, False),  # nobody looks
        ({"jwt": {"providers": [{"recomputeRoute": None}, 7, None, []]}}, False),
        ({"jwt": {"providers": {"recomputeRoute": True}}}, False),
        ({"jwt": [{"providers": [{"recomputeRoute": True}]}]}, False),
        ({"jwt": None}, False),
    ],
)
def test_a_document_keeps_the_paths_below_its_fields_that_the_tables_know(
    spec: dict[str, Any], found: bool
) -> None:
    known = find_kind("gateway.envoyproxy.io", "SecurityPolicy")
    assert known is not None
    fields = read_fields({"spec": {**spec, "x": {"recomputeRoute": "secret"}}}, known.inner)
    assert ("jwt.providers[].recomputeRoute" in fields) is found
    assert len(fields) <= 32 + len(known.inner) and "secret" not in repr(fields)


def test_both_groups_of_traefik_are_known() -> None:
    assert find_kind("traefik.io", "Middleware") is find_kind("traefik.containo.us", "Middleware")
