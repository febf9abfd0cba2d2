"""`edgefast check`: exit 1 whenever something in the files would not be served, and what is said of it; `--strict`, `--adopt`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cli.calling import Outcome, call
from tests.support.documents import backend

pytestmark = pytest.mark.pure

CLASS = """apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: gateway.edge.io/gatewayclass-controller}
"""
GATEWAY = """apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: edge
  listeners: [{name: http, port: 8080, protocol: HTTP}]
"""
ROUTE = """apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: api, namespace: shop, labels: {app: api}}
spec:
  parentRefs: [{name: edge}]
  rules: [{backendRefs: [{name: api, port: 80}]}]
"""
BACKEND = backend(
    "api", "shop", port="name: http, port: 80", target="name: http, port: 3001", address="127.0.0.1"
)
WHOLE = (CLASS, GATEWAY, ROUTE, BACKEND)
FOREIGN_CLASS = """apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec:
  controllerName: gateway.envoyproxy.io/gatewayclass-controller
  parametersRef: {group: gateway.envoyproxy.io, kind: EnvoyProxy, name: proxy, namespace: shop}
"""
INGRESS = """apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: api, namespace: shop}
spec:
  ingressClassName: nginx
  defaultBackend: {service: {name: api, port: {number: 80}}}
"""
POLICY = """apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: jwt, namespace: shop}
spec:
  TARGET
"""
IS_ROUTE = "group: gateway.networking.k8s.io, kind: HTTPRoute"

Check = Callable[..., Outcome]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Checks documents, as one file."""

    def run(*documents: str, options: tuple[str, ...] = ()) -> Outcome:
        path = tmp_path / "shop.yaml"
        path.write_text("---\n".join(documents))
        outcome = call("check", "-f", str(path), *options)
        return Outcome(outcome.status, outcome.out.replace(f"{path}:", "shop.yaml:"), outcome.err)

    return run


def test_what_is_served_whole_is_no_problem(check: Check) -> None:
    assert check(*WHOLE, options=("--strict",)).status == 0


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        (
            (FOREIGN_CLASS, GATEWAY, ROUTE, BACKEND),
            "is served by another controller (this one is gateway.edge.io/gatewayclass-controller), "
            "pass --adopt to try it",
        ),
        (
            (GATEWAY, ROUTE, BACKEND),
            "GatewayClass edge not found, write one, or pass --adopt to try the file without it",
        ),
        ((CLASS, ROUTE, BACKEND), "Gateway shop/edge not found"),
        (
            (CLASS, GATEWAY, ROUTE.replace("parentRefs: [{name: edge}]", "parentRefs: []")),
            "a Gateway to serve the route",
        ),
        (
            (CLASS, GATEWAY, ROUTE.replace("{name: edge}", '{group: "", kind: Service, name: a}')),
            '"Service" (supported: Gateway, ListenerSet)',
        ),
        (
            (*WHOLE, INGRESS),
            'the Ingress has class "nginx", which edgefast does not serve here, serve it with --ingress-class nginx',
        ),
        (
            (CLASS, GATEWAY, ROUTE.replace("backendRefs: [{name: api, port: 80}]", "name: none")),
            "so it answers 500",
        ),
        ((), "without them no traffic is served"),
        (("# nothing\n",), "without them no traffic is served"),
        ((BACKEND,), "a Gateway and its GatewayClass; without them no traffic is served"),
    ],
)
def test_what_is_not_served_makes_it_fail(
    check: Check, documents: tuple[str, ...], said: str
) -> None:
    outcome = check(*documents)
    assert outcome.status == 1
    # Nothing behind it: it is no warning.
    assert any(line.endswith(said) for line in outcome.out.splitlines()), outcome.out


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("traefik.io/v1alpha1", "IngressRoute"),
        ("networking.istio.io/v1", "VirtualService"),
        ("networking.istio.io/v1", "Gateway"),
        ("projectcontour.io/v1", "HTTPProxy"),
        ("k8s.nginx.org/v1", "VirtualServer"),
        ("extensions/v1beta1", "Ingress"),
    ],
)
def test_kinds_by_which_others_route(check: Check, api_version: str, kind: str) -> None:
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: api}}\nspec: {{}}\n"
    outcome = check(*WHOLE, text)
    assert outcome.status == 1
    ours = "a Gateway of gateway.networking.k8s.io/v1"
    hints = {"Gateway": ours, "Ingress": "apiVersion: networking.k8s.io/v1"}
    hint = hints.get(kind, "an HTTPRoute that names a Gateway in parentRefs")
    assert f"edgefast does not serve {kind} of {api_version}, write {hint}" in outcome.out
    assert "no good version" not in outcome.out  # it has no place in our listeners


@pytest.mark.parametrize(
    "api_version", ['""', "v1", "apps/v1", "edge/v1", "gateway.example.com/v1"]
)
def test_a_route_in_a_group_that_has_none(check: Check, api_version: str) -> None:
    route = ROUTE.replace("gateway.networking.k8s.io/v1", api_version)
    outcome = check(CLASS, GATEWAY, route, BACKEND)
    assert outcome.status == 1
    shown = api_version.strip('"')
    assert f'HTTPRoute shop/api apiVersion: NotSupported "{shown}" (supported: ' in outcome.out


def test_warnings_count_when_asked(check: Check) -> None:
    documents = (*WHOLE, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\n")
    assert check(*documents).status == 0
    strict = check(*documents, options=("--strict",))
    assert strict.status == 1
    assert "(warning)" in strict.out


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (f"targetRefs: [{{{IS_ROUTE}, name: api}}]", "HTTPRoute shop/api"),
        (f"targetRef: {{{IS_ROUTE}, name: api}}", "HTTPRoute shop/api"),
        (f"targetRef: {{{IS_ROUTE}, name: api, sectionName: r}}", "HTTPRoute shop/api (r)"),
        (f"targetSelectors: [{{{IS_ROUTE}, matchLabels: {{app: api}}}}]", "HTTPRoute shop/api"),
        ("targetSelectors: [{kind: HTTPRoute, matchLabels: {app: api}}]", "HTTPRoute shop/api"),
        ("targetRef: {kind: HTTPRoute, name: api}", "HTTPRoute shop/api"),
        ("targetRef: {kind: Service, name: api}", "Service shop/api"),
        (
            "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]",
            "Gateway shop/edge",
        ),
        (
            "targetRefs: [{group: gateway.networking.k8s.io, kind: GatewayClass, name: edge}]",
            "GatewayClass edge",
        ),
        ('targetRefs: [{group: "", kind: Service, name: api}]', "Service shop/api"),
        ("targetRefs: [{group: core, kind: Service, name: api}]", "Service shop/api"),
        (
            "selector: {matchLabels: {gateway.networking.k8s.io/gateway-name: edge}}",
            "Gateway shop/edge",
        ),
    ],
)
def test_a_policy_that_is_not_applied(check: Check, target: str, said: str) -> None:
    outcome = check(POLICY.replace("TARGET", target), *WHOLE)
    assert outcome.status == 1
    (line,) = [line for line in outcome.out.splitlines() if "PolicyIgnored" in line]
    assert f"{said} is served WITHOUT SecurityPolicy shop/jwt" in line
    assert line.startswith("shop.yaml:5 ")
    assert not line.endswith("(warning)")


@pytest.mark.parametrize(
    "target",
    [
        f"targetRefs: [{{{IS_ROUTE}, name: other}}]",
        'targetRefs: [{group: "", kind: HTTPRoute, name: api}]',
        f"targetRefs: [{{{IS_ROUTE}, name: api, namespace: other}}]",
        f"targetSelectors: [{{{IS_ROUTE}, matchLabels: {{app: web}}}}]",
        "targetRefs: [{group: apps, kind: Deployment, name: api}]",
        "targetRefs: api",
        "targetRefs: [7, {kind: [HTTPRoute], name: api}, {}]",
        f"targetSelectors: [{{{IS_ROUTE}, matchLabels: 7}}]",
        "none: {}",
    ],
)
def test_a_policy_of_nothing_that_is_served(check: Check, target: str) -> None:
    outcome = check(POLICY.replace("TARGET", target), *WHOLE)
    assert outcome.status == 0
    assert "WITHOUT" not in outcome.out


def test_a_policy_of_what_is_not_served_is_no_echo(check: Check) -> None:
    policy = POLICY.replace("TARGET", f"targetRefs: [{{{IS_ROUTE}, name: api}}]")
    assert "WITHOUT" not in check(policy, CLASS, ROUTE, BACKEND).out


def test_files_of_another_controller_are_adopted(check: Check) -> None:
    documents = (FOREIGN_CLASS, GATEWAY, ROUTE, BACKEND)
    outcome = check(*documents, options=("--adopt",))
    assert (outcome.status, outcome.out) == (
        0,
        "Adopted GatewayClass edge of gateway.envoyproxy.io/gatewayclass-controller accepted; "
        "parametersRef to EnvoyProxy proxy ignored (--adopt) (warning)\n",
    )
    assert check(*documents, options=("--adopt", "--strict")).status == 0


def test_a_class_that_is_in_no_file_is_adopted(check: Check) -> None:
    own = (
        GATEWAY + "  infrastructure:\n"
        "    parametersRef: {group: gateway.nginx.org, kind: NginxProxy, name: proxy}\n"
    )
    outcome = check(own, ROUTE, BACKEND, options=("--adopt",))
    assert outcome.status == 0
    assert outcome.out == (
        "Adopted GatewayClass edge, which is in no file accepted; "
        "parametersRef to NginxProxy proxy ignored (--adopt) (warning)\n"
    )


def test_adoption_leaves_mistakes_of_ours(check: Check) -> None:
    wrong = FOREIGN_CLASS.replace(
        "gateway.envoyproxy.io, kind: EnvoyProxy", "gateway.edge.io, kind: EdgeProxy"
    )
    outcome = check(wrong, GATEWAY, ROUTE, BACKEND, options=("--adopt",))
    assert outcome.status == 1
    assert "EdgeProxy shop/proxy not found" in outcome.out


def test_adoption_of_what_is_ours_says_nothing(check: Check) -> None:
    assert check(*WHOLE, options=("--adopt",)).out == ""


def test_an_explanation_of_adopted_files(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text("---\n".join((FOREIGN_CLASS, GATEWAY, ROUTE, BACKEND)))
    asked = ("explain", "-f", str(path), "GET", "http://a.example:8080/")
    assert call(*asked).status == 1
    outcome = call(*asked, "--adopt")
    assert (outcome.status, outcome.err.count("accepted")) == (0, 1)


def test_adoption_is_for_files(tmp_path: Path) -> None:
    outcome = call("explain", "--live", "--adopt", "GET", "http://a.example/")
    assert outcome.status == 2
    assert "--adopt: only with -f" in outcome.err


UNAIMED = """apiVersion: API
kind: KIND
metadata: {name: NAME, namespace: SPACE}
spec: SPEC
"""
LABELLED = GATEWAY.replace(
    "{name: edge, namespace", "{name: edge, labels: {tier: front}, namespace"
)


def _unaimed(api: str, kind: str, space: str, spec: str, name: str = "deny") -> str:
    made = UNAIMED.replace("API", api).replace("KIND", kind).replace("SPACE", space)
    return made.replace("NAME", name).replace("SPEC", spec)


@pytest.mark.parametrize("kind", ["AuthorizationPolicy", "RequestAuthentication"])
@pytest.mark.parametrize(
    ("space", "spec", "applies"),
    [
        ("shop", "{}", True),
        ("shop", "{rules: [{}]}", True),
        ("istio-system", "{rules: [{}]}", True),
        ("other", "{rules: [{}]}", False),
        ("shop", "{selector: {matchLabels: {tier: front}}}", True),
        ("istio-system", "{selector: {matchLabels: {tier: front}}}", True),
        ("shop", "{selector: {matchLabels: {tier: back}}}", False),
        (
            "istio-system",
            "{selector: {matchLabels: {gateway.networking.k8s.io/gateway-name: edge}}}",
            True,
        ),
        ("shop", "{selector: {matchLabels: {gateway.networking.k8s.io/gateway-name: edge}}}", True),
        ("shop", '{targetRefs: [{group: "", kind: Service, name: none}]}', False),
    ],
)
def test_policies_of_istio_that_name_nothing(
    check: Check, kind: str, space: str, spec: str, applies: bool
) -> None:
    """Without a selector they are for their namespace, from the root namespace for all."""
    policy = _unaimed("security.istio.io/v1", kind, space, spec)
    outcome = check(policy, CLASS, LABELLED, ROUTE, BACKEND)
    said = f"PolicyIgnored Gateway shop/edge answers 500: {kind} {space}/deny of security.istio.io decides access"
    assert outcome.out.count(said) == applies
    assert outcome.status == applies


@pytest.mark.parametrize(
    ("api", "kind", "spec"),
    [
        ("extensions.istio.io/v1alpha1", "WasmPlugin", "{url: oci://a}"),
        (
            "networking.istio.io/v1alpha3",
            "EnvoyFilter",
            "{workloadSelector: {labels: {tier: front}}}",
        ),
        ("traefik.io/v1alpha1", "TLSOption", "{clientAuth: {secretNames: [a]}}"),
    ],
)
def test_other_policies_that_name_nothing(check: Check, api: str, kind: str, spec: str) -> None:
    policy = _unaimed(api, kind, "shop", spec, "default")
    outcome = check(policy, CLASS, LABELLED, ROUTE, BACKEND)
    assert (
        f"Gateway shop/edge answers 500: {kind} shop/default of {api.split('/')[0]}" in outcome.out
    )
    assert outcome.status == 1


@pytest.mark.parametrize(
    ("api", "kind", "closes"),
    [
        ("gateway.envoyproxy.io/v1alpha1", "ClientTrafficPolicy", False),
        ("gateway.nginx.org/v1alpha1", "ClientSettingsPolicy", False),
        ("gateway.kgateway.dev/v1alpha1", "TrafficPolicy", False),
        ("kuadrant.io/v1", "AuthPolicy", True),
        ("hub.traefik.io/v1alpha1", "AccessControlPolicy", True),
    ],
)
@pytest.mark.parametrize(
    "field", ["targetRefs: [{", "targetSelectors: [{matchLabels: {tier: front}, "]
)
def test_policies_of_other_projects(
    check: Check, api: str, kind: str, closes: bool, field: str
) -> None:
    named = "name: edge" if field.startswith("targetRefs") else "sectionName: http"
    group = "group: gateway.networking.k8s.io, kind: Gateway"
    policy = _unaimed(api, kind, "shop", f"{{{field}{group}, {named}}}]}}")
    outcome = check(policy, CLASS, LABELLED, ROUTE, BACKEND)
    assert (f"is served WITHOUT {kind} shop/deny" in outcome.out) == (not closes)
    assert (f"answers 500: {kind} shop/deny of" in outcome.out) == closes
    assert outcome.status == 1
