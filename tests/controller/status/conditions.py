"""Statuses as tests write them: conditions and entries of parents, short."""

from __future__ import annotations

from typing import Any

OURS = "gateway.edge.io/gatewayclass-controller"


def condition(type_: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": type_, "message": "m", **more}


def entry(name: str, controller: str = OURS, *conditions: dict[str, Any], **ref: Any) -> Any:
    return {
        "parentRef": {"name": name, **ref},
        "controllerName": controller,
        "conditions": list(conditions) or [condition("Accepted")],
    }
