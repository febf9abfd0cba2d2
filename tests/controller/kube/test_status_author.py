"""Authorship: the writer of a status is who wrote what its telling condition says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controller.kube.status_author import AUTHOR, Word, author_of, find_own_entry

pytestmark = pytest.mark.pure

US = author_of("edge-gateway-system.edge-gateway")
THEM = author_of("tenant.edge-gateway")


def entry(
    manager: str, *leaves: str, type_: str = "Programmed", subresource: str = "status"
) -> Any:
    fields = {f'k:{{"type":"{type_}"}}': {".": {}, **{f"f:{leaf}": {} for leaf in leaves}}}
    return {
        "manager": manager,
        "operation": "Update",
        "subresource": subresource,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": fields}},
    }


def written(*entries: Any, kind: str = "Gateway", author: str = US) -> Word:
    raw = msgspec.json.encode({"metadata": {"name": "g", "managedFields": entries}})
    return find_own_entry(raw, kind, author)


def test_our_word_is_ours() -> None:
    assert written(entry(US, "message", "status")) == "ours"
    assert written(entry("kubectl", "message"), entry(US, "message")) == "ours"


def test_a_word_of_another_installation_is_not() -> None:
    assert not written(entry(THEM, "message", "status"))
    assert not written(entry("envoy-gateway", "message"))


def test_what_another_one_has_written_over_is_not_ours() -> None:
    """Fields whose value did not change stay with their first writer, its type always."""
    assert not written(entry(US, "type", "lastTransitionTime"), entry(THEM, "message", "status"))


def test_a_release_that_gave_no_name_may_have_been_this_installation() -> None:
    assert written(entry(AUTHOR, "message")) == "unsigned"


def test_only_the_status_counts_and_only_its_telling_condition() -> None:
    assert not written(entry(US, "message", subresource=""))
    assert not written(entry(US, "message", type_="Accepted"))
    assert written(entry(US, "message", type_="Accepted"), kind="GatewayClass")
    assert not written(entry(US, "message"), kind="HTTPRoute")
    assert not written()
