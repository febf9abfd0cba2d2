"""`edgefast check`: what messages name, what they give to paste, and `--cluster`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Outcome, call
from cli.test_check_served import BACKEND, CLASS, GATEWAY, ROUTE, WHOLE

pytestmark = pytest.mark.pure


def check(folder: Path, *documents: str) -> Outcome:
    file = folder / "shop.yaml"
    file.write_text("---\n".join(documents))
    return call("check", "-f", str(file))


def test_a_chart_that_is_not_rendered_is_recognised(tmp_path: Path) -> None:
    template = (
        "{{- if .Values.on }}\n" + ROUTE.replace("api", '{{ include "x" . }}') + "{{- end }}\n"
    )
    outcome = check(tmp_path, template)
    assert "Invalid a template of a Helm chart (expected YAML or JSON); render the chart first" in (
        outcome.out
    )


def test_an_object_without_a_name_has_no_internal_one(tmp_path: Path) -> None:
    outcome = check(
        tmp_path, CLASS, GATEWAY, ROUTE.replace("name: api, namespace", "namespace"), BACKEND
    )
    assert "HTTPRoute shop/(no name) metadata.name: Required" in outcome.out
    assert "?" not in outcome.out


def test_a_service_without_endpoints_gets_a_slice_to_paste(tmp_path: Path) -> None:
    service, _, _ = BACKEND.partition("---")
    outcome = check(tmp_path, CLASS, GATEWAY, ROUTE, service)
    assert outcome.status == 0
    _, _, example = outcome.err.partition("---\n")
    assert "no problems" in check(tmp_path, CLASS, GATEWAY, ROUTE, service, example + "\n").err


def test_grpcroutes_of_the_alpha_are_read(tmp_path: Path) -> None:
    text = ROUTE.replace("v1\n", "v1alpha2\n").replace("HTTPRoute", "GRPCRoute")
    outcome = check(tmp_path, CLASS, GATEWAY, text, BACKEND)
    assert (outcome.status, outcome.out) == (0, "")


def test_a_cluster_gives_each_gateway_its_own_addresses(tmp_path: Path) -> None:
    other = GATEWAY.replace("name: edge,", "name: other,")
    file = tmp_path / "all.yaml"
    text = "---\n".join([*WHOLE, other])
    file.write_text(text.replace("127.0.0.1", "10.0.0.1"))  # loopback is refused in a cluster
    assert call("check", "-f", str(file)).status == 1
    assert call("check", "-f", str(file), "--cluster").status == 0
    assert call("check", "-f", str(file), "--cluster", "--adopt").status == 2


def test_gateways_of_one_port_are_both_served_and_a_conflict_names_its_hostname(
    tmp_path: Path,
) -> None:
    """Without separate addresses; listeners without a conflict are served."""
    port = "{name: NAME, port: 8080, protocol: HTTP, hostname: HOST}"

    def gateway(name: str, *hosts: str) -> str:
        listeners = [
            port.replace("NAME", f"l{at}").replace("HOST", x) for at, x in enumerate(hosts)
        ]
        start, _, _ = GATEWAY.replace("name: edge,", f"name: {name},").partition("  listeners")
        return f"{start}  listeners: [{', '.join(listeners)}]\n"

    route = ROUTE.replace("[{name: edge}]", "[{name: edge}, {name: other, sectionName: l0}]")
    both = gateway("edge", "a.test", "s.test"), gateway("other", "b.test", "s.test")
    outcome = check(tmp_path, CLASS, *both, route, BACKEND)
    (line,) = outcome.out.splitlines()
    assert "Gateway shop/other spec.listeners[1]: HostnameConflict" in line
    assert 'port 8080 with hostname "s.test": same as listener shop/edge/l1' in line
    apart = gateway("edge", "a.test"), gateway("other", "b.test")
    assert check(tmp_path, CLASS, *apart, route, BACKEND).status == 0
