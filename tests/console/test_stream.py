"""Routes of layer 4 in the console's tree: below their listener, with their shares."""

import pytest

from edgefast import ir
from edgefast.console.index import Index

pytestmark = pytest.mark.pure


def test_a_place_stands_below_its_listener_and_is_found_by_its_route() -> None:
    fleet = ir.Fleet(
        name="f",
        listeners=(
            ir.Listener(name="default/gw/tcp", port=90, bind_port=90, protocol="TCP"),
            ir.Listener(name="default/gw/web", port=80, bind_port=80, protocol="HTTP"),
        ),
        stream_routes=(
            ir.StreamRoute(
                listener="default/gw/tcp",
                hostname="*",
                route="tcproute/default/db",
                backends=(ir.StreamBackend(cluster="c"), ir.StreamBackend(reason="gone")),
            ),
        ),
    )
    index = Index(fleet)
    (node,) = index.search("tcproute/default/db")
    assert node.parent is not None and node.parent.name == "tcp"
    assert [one.name for one in index.children(node)] == ["c", ""]
    assert index.broken == [node]
    assert index.routes["tcproute/default/db"] == [node]
