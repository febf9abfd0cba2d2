"""The schema of the status of our own policies: entries of ancestors, as the Gateway API has them for every policy.

In: nothing. Out: `POLICY_STATUS`. Source: Gateway API `PolicyStatus` (GEP-713), Kubernetes `metav1.Condition`: their limits.
Must never: take less than the Gateway API does, because other controllers write entries of their own.
"""

from __future__ import annotations

from typing import Any, Final

from controller.manifests.objects import Manifest

_CONDITION: Final[Manifest] = {
    "type": "object",
    "description": "One word of a controller about the policy at this ancestor.",
    "properties": {
        "type": {
            "type": "string",
            "maxLength": 316,
            "description": "What is said, such as Accepted.",
        },
        "status": {
            "type": "string",
            "enum": ["True", "False", "Unknown"],
            "description": "Whether it is so.",
        },
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "description": "The generation of the policy that this is said of.",
        },
        "lastTransitionTime": {
            "type": "string",
            "format": "date-time",
            "description": "Since when the status is what it is.",
        },
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "description": "Why, in a word.",
        },
        "message": {"type": "string", "maxLength": 32768, "description": "Why, for people."},
    },
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
}


def _text(description: str, most: int = 253) -> dict[str, Any]:
    return {"type": "string", "maxLength": most, "description": description}


_ANCESTOR_REF: Final[Manifest] = {
    "type": "object",
    "description": "The object that the policy holds for: a Gateway.",
    "properties": {
        "group": _text("Its API group.") | {"default": "gateway.networking.k8s.io"},
        "kind": _text("Its kind.", 63) | {"default": "Gateway"},
        "namespace": _text("Its namespace.", 63),
        "name": _text("Its name."),
        "sectionName": _text("A part of it."),
        "port": {
            "type": "integer",
            "format": "int32",
            "minimum": 1,
            "maximum": 65535,
            "description": "A port of it.",
        },
    },
    "required": ["name"],
}

POLICY_STATUS: Final[Manifest] = {
    "type": "object",
    "description": "What controllers say of the policy, by the object that it holds for.",
    "properties": {
        "ancestors": {
            "type": "array",
            "maxItems": 16,
            "x-kubernetes-list-type": "atomic",
            "description": "At most 16; a policy holds for further ones all the same.",
            "items": {
                "type": "object",
                "description": "What one controller says of the policy for one object.",
                "properties": {
                    "ancestorRef": _ANCESTOR_REF,
                    "controllerName": _text("The controller that says it."),
                    "conditions": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": 8,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["type"],
                        "description": "What it says.",
                        "items": _CONDITION,
                    },
                },
                "required": ["ancestorRef", "controllerName", "conditions"],
            },
        }
    },
    "required": ["ancestors"],
}
