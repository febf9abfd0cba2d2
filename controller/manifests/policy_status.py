"""The status schema of edgefast's policies: ancestor entries, as in the Gateway API.

In: nothing.
Out: `POLICY_STATUS`.
Source: Gateway API `PolicyStatus` (GEP-713), Kubernetes `metav1.Condition`: their limits.
Must never: be stricter than the Gateway API, because other controllers write their own entries.
"""

from __future__ import annotations

from typing import Any, Final

from controller.manifests.objects import Manifest

_CONDITION: Final[Manifest] = {
    "type": "object",
    "description": "One condition of the policy at this ancestor.",
    "properties": {
        "type": {
            "type": "string",
            "maxLength": 316,
            "description": "Type of the condition, such as Accepted.",
        },
        "status": {
            "type": "string",
            "enum": ["True", "False", "Unknown"],
            "description": "Status of the condition.",
        },
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "description": "The generation of the policy that the condition is based on.",
        },
        "lastTransitionTime": {
            "type": "string",
            "format": "date-time",
            "description": "Time of the last change of the status.",
        },
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "description": "Reason for the status, one word.",
        },
        "message": {"type": "string", "maxLength": 32768, "description": "Details of the reason."},
    },
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
}


def _text(description: str, most: int = 253) -> dict[str, Any]:
    return {"type": "string", "maxLength": most, "description": description}


_ANCESTOR_REF: Final[Manifest] = {
    "type": "object",
    "description": "The object that the policy applies to: a Gateway.",
    "properties": {
        "group": _text("Its API group.") | {"default": "gateway.networking.k8s.io"},
        "kind": _text("Its kind.", 63) | {"default": "Gateway"},
        "namespace": _text("Its namespace.", 63),
        "name": _text("Its name."),
        "sectionName": _text("Part of the object."),
        "port": {
            "type": "integer",
            "format": "int32",
            "minimum": 1,
            "maximum": 65535,
            "description": "Port of the object.",
        },
    },
    "required": ["name"],
}

POLICY_STATUS: Final[Manifest] = {
    "type": "object",
    "description": "Status of the policy, one entry for each object that it applies to.",
    "properties": {
        "ancestors": {
            "type": "array",
            "maxItems": 16,
            "x-kubernetes-list-type": "atomic",
            "description": "At most 16 entries. The policy also applies to further objects.",
            "items": {
                "type": "object",
                "description": "Status of the policy by one controller for one object.",
                "properties": {
                    "ancestorRef": _ANCESTOR_REF,
                    "controllerName": _text("The controller that wrote the entry."),
                    "conditions": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": 8,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["type"],
                        "description": "Conditions of the entry.",
                        "items": _CONDITION,
                    },
                },
                "required": ["ancestorRef", "controllerName", "conditions"],
            },
        }
    },
    "required": ["ancestors"],
}
