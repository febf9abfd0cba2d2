"""The configuration of a release of helm: changed by values, and past helm."""

from __future__ import annotations

from typing import Any

import yaml

from cluster.chart_helpers import Hands
from cluster.installer import SYSTEM, Installer
from controller.manifests.generate import FOLDER


def test_the_configuration_is_changed_by_values_and_an_edit_is_not_undone_unasked(
    installer: Installer,
) -> None:
    """The documented way any number of times; past helm, the next upgrade names who did it and changes nothing."""
    api = installer.apiserver.admin
    path = f"/api/v1/namespaces/{SYSTEM}/configmaps/edge-gateway-config"
    common = ("edge-gateway", str(FOLDER), "-n", SYSTEM, "--timeout", "90s")
    upgrade = ("upgrade", *common, "--reset-then-reuse-values", "--set")

    def level() -> str:
        text = api.get(path)["data"]["edge-gateway.yaml"]
        return str(yaml.safe_load(text)["logging"]["level"])

    def template() -> Any:
        deployment = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/edge-gateway"
        return api.get(deployment)["spec"]["template"]

    with Hands(installer.apiserver, SYSTEM):
        installer.helm("install", *common)
        for wanted in ("debug", "warn"):
            before = template()
            installer.helm(*upgrade, f"config.edgeGateway.logging.level={wanted}")
            assert level() == wanted
            assert template() != before, "the controller is rolled with it"
        # The edit goes into the values (a text that is equal would stay the editor's as well), or is undone.
        for brought in ("error", "info"):
            text = api.get(path)["data"]["edge-gateway.yaml"].replace("warn", "error")
            edited = {"data": {"edge-gateway.yaml": text}}
            api.patch(f"{path}?fieldManager=kubectl-edit", edited)
            said = installer.helm(*upgrade, "config.edgeGateway.logging.level=info", wrong=True)
            assert 'conflict with "kubectl-edit"' in said
            assert level() == "error"
            level_of_values = f"config.edgeGateway.logging.level={brought}"
            installer.helm(*upgrade, level_of_values, "--force-conflicts")
            assert level() == brought
            installer.helm(*upgrade, "config.edgeGateway.logging.level=warn")
            assert level() == "warn"
