"""Denials: calls that RBAC denies are reported with verb and resource until they succeed."""

from __future__ import annotations

import logging

import pytest
from aiohttp import web

from controller.kube.apis import APIS
from controller.kube.denials import KEPT, LAST, Denials
from controller.kube.errors import ApiError

from .script import page, scripted

GROUP = "gateway.networking.k8s.io"
ROUTES = f"/apis/{GROUP}/v1/namespaces/shop/httproutes"
USER = "system:serviceaccount:edge:gateway"


def denied(verb: str, resource: str, group: str = GROUP, where: str = "shop") -> ApiError:
    place = f'in the namespace "{where}"' if where else "at the cluster scope"
    said = f'{resource} "r" is forbidden: User "{USER}" cannot {verb} resource "{resource}" in API group "{group}" {place}'
    return ApiError(403, "Forbidden", said)


def texts(denials: Denials) -> list[str]:
    return [one.text() for one in denials.problems()]


@pytest.mark.pure
def test_a_denial_names_verb_and_resource_until_the_call_succeeds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    denials = Denials()
    with caplog.at_level(logging.WARNING):
        for name in ("a", "b"):  # one report and one line for all objects of a kind
            error = denied("patch", "httproutes/status")
            denials.fail("PATCH", f"{ROUTES}/{name}/status", False, error)
        denials.fail("GET", "/api/v1/secrets", True, denied("watch", "secrets", "", ""))
    routes, secrets = texts(denials)
    assert routes.startswith(
        "ServiceAccount edge/gateway: AccessDenied RBAC denies verb patch on resource httproutes/status of API group "
        f"{GROUP} in namespace shop; "
    )
    assert "verb watch on resource secrets in all namespaces; " in secrets
    assert [one.message for one in caplog.records] == [
        f"access denied: {routes}",
        f"access denied: {secrets}",
    ]
    denials.succeed("GET", f"{ROUTES}/a", False)  # others change nothing
    denials.succeed("PATCH", f"{ROUTES}/a", False)
    denials.succeed("GET", "/api/v1/secrets", False)
    assert len(texts(denials)) == 2
    denials.succeed("PATCH", f"{ROUTES}/c/status", False)
    assert texts(denials) == [secrets]
    denials.succeed("GET", "/api/v1/secrets", True)
    assert texts(denials) == []


@pytest.mark.pure
@pytest.mark.parametrize(
    "error",
    [
        ApiError(401, "Unauthorized", denied("get", "pods").message),
        ApiError(403, "Forbidden", 'pods "a" is forbidden: exceeded quota: q'),
        denied("get", "customresourcedefinitions", "apiextensions.k8s.io", ""),
    ],
    ids=["401", "quota", "optional"],
)
def test_what_is_no_denial(error: ApiError) -> None:
    denials = Denials()
    denials.fail("GET", ROUTES, False, error)
    assert texts(denials) == []


@pytest.mark.pure
def test_old_denials_are_left_out_and_their_number_is_bounded() -> None:
    now = [0.0]
    denials = Denials(lambda: now[0])
    for number in range(KEPT + 1):
        where = f"n{number:03}"
        path = f"/api/v1/namespaces/{where}/pods"
        denials.fail("GET", path, False, denied("list", "pods", "", where))
    assert len(texts(denials)) == KEPT and "namespace n000" not in "".join(texts(denials))
    now[0] = LAST + 1
    assert texts(denials) == []


@pytest.mark.wire
async def test_a_client_keeps_them() -> None:
    closed = True

    async def serve(request: web.Request) -> web.StreamResponse:
        if closed:
            error = denied("list", "pods", "")
            body = {"kind": "Status", "code": 403, "reason": error.reason, "message": error.message}
            return web.json_response(body, status=403)
        return page(1)

    async with scripted(serve) as kube:
        for _ in range(2):
            with pytest.raises(ApiError):
                await kube.list(APIS["v1", "Pod"], "shop")
        with pytest.raises(ApiError):
            async for _ in kube.watch(
                APIS["v1", "Pod"], "shop", resource_version="1", seconds=1, silence=1
            ):
                pass
        (said,) = texts(kube.denials)  # of a list and a watch, in the server's words
        assert "verb list on resource pods in namespace shop" in said
        closed = False
        await kube.list(APIS["v1", "Pod"], "shop")
        async for _ in kube.watch(
            APIS["v1", "Pod"], "shop", resource_version="1", seconds=1, silence=1
        ):
            pass
        assert texts(kube.denials) == []
