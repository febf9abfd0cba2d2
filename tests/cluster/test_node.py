"""Parts of the node agent on their own: names, images, variables, files that are shown."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from cluster.world.node.environment import expand
from cluster.world.node.names import Names, answer
from cluster.world.node.settings import Image, find_image
from cluster.world.node.volumes import _show


def query(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return (
        struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)
    )


def addresses(message: bytes) -> tuple[int, list[str]]:
    _, flags, _, count, *_ = struct.unpack_from("!HHHHHH", message)
    records = [message[len(message) - 16 * n :][:16] for n in range(count, 0, -1)]
    return flags & 0xF, [".".join(map(str, record[-4:])) for record in records]


@pytest.fixture
def names() -> Names:
    made = Names()
    meta = {"namespace": "shop", "resourceVersion": "1"}
    made.on_service(
        "SYNC",
        [
            {"metadata": {**meta, "name": "web"}, "spec": {"clusterIP": "10.96.3.4"}},
            {"metadata": {**meta, "name": "bare"}, "spec": {"clusterIP": "None"}},
        ],
    )
    labels = {"kubernetes.io/service-name": "bare"}
    ready, not_ready = {"ready": True}, {"ready": False}
    endpoints = [
        {"addresses": ["10.244.0.9"], "conditions": ready, "hostname": "a"},
        {"addresses": ["10.244.0.8"], "conditions": ready},
        {"addresses": ["10.244.0.7"], "conditions": not_ready},
    ]
    made.on_slice(
        "ADDED", {"metadata": {**meta, "name": "bare-1", "labels": labels}, "endpoints": endpoints}
    )
    return made


@pytest.mark.parametrize(
    ("name", "code", "found"),
    [
        ("web.shop.svc.cluster.local", 0, ["10.96.3.4"]),
        ("WEB.shop.svc.cluster.local", 0, ["10.96.3.4"]),
        ("bare.shop.svc.cluster.local", 0, ["10.244.0.8", "10.244.0.9"]),
        ("a.bare.shop.svc.cluster.local", 0, ["10.244.0.9"]),
        ("b.bare.shop.svc.cluster.local", 3, []),
        ("web.other.svc.cluster.local", 3, []),
        ("web.shop.svc.cluster.local.shop.svc.cluster.local", 3, []),
        ("svc.cluster.local", 3, []),
        ("example.com", 3, []),
    ],
)
def test_names_of_services(names: Names, name: str, code: int, found: list[str]) -> None:
    assert addresses(answer(query(name), names.lookup)) == (code, found)


def test_a_name_without_ipv6_addresses_exists(names: Names) -> None:
    assert addresses(answer(query("web.shop.svc.cluster.local", 28), names.lookup)) == (0, [])


def test_a_cut_question_is_an_error(names: Names) -> None:
    whole = query("web.shop.svc.cluster.local")
    for end in range(12, len(whole)):
        assert addresses(answer(whole[:end], names.lookup))[0] == 1


def test_an_answer_that_does_not_fit_says_so() -> None:
    many = [f"10.244.0.{n}" for n in range(200)]
    message = answer(query("x.y"), lambda _: many, 512)
    assert len(message) <= 512
    assert struct.unpack_from("!H", message, 2)[0] & 0x0200


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("edgefast:1.0", "edgefast"),
        ("registry.example:5000/team/edgefast@sha256:0", "edgefast"),
        ("edgefast-controller:1.0", "edgefast-controller"),
        ("edgefast:old", "edgefast:old"),
        ("edgefastest:1", None),
        ("k8s.example/echo/basic:1", "k8s.example/echo"),
    ],
)
def test_an_image_is_found_by_its_longest_name(reference: str, found: str | None) -> None:
    known = ("edgefast", "edgefast-controller", "edgefast:old", "k8s.example/echo")
    images = {name: Image((name,)) for name in known}
    image = find_image(images, reference)
    assert (image.entrypoint[0] if image else None) == found


def test_variables_are_expanded_once() -> None:
    env = {"A": "1", "B": "$(A)"}
    assert expand("$(A) $(B) $(C) $$(A) $x", env) == "1 $(A) $(C) $(A) $x"


def test_files_change_together(tmp_path: Path) -> None:
    _show(tmp_path, {"a": (b"1", 0o644), "dir/b": (b"2", 0o600)}, None)
    held = (tmp_path / "..data").resolve()
    _show(tmp_path, {"a": (b"3", 0o644), "c": (b"4", 0o644)}, None)
    assert not held.exists()
    assert sorted(one.name for one in tmp_path.iterdir() if not one.name.startswith("..")) == [
        "a",
        "c",
    ]
    assert (tmp_path / "a").read_bytes() == b"3"
    assert len([one for one in tmp_path.iterdir() if one.name.startswith("..")]) == 2
