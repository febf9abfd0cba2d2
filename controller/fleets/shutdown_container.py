"""The container `shutdown-manager`: lets a pod end only when its proxy has drained.

In: a fleet and the placement.
Out: the container and its volume. Its preStop hook, `edgefast shutdown`, starts the drain, waits
for it and creates a file. The proxy's preStop hook requests :19002/shutdown/ready, which answers
when the file exists.
Source: spec section 2 (each proxy Pod runs two containers).
Must never: delay a pod longer than its grace period.
"""

from __future__ import annotations

from controller.fleets.placement import SHUTDOWN, SHUTDOWN_PORT, Manifest, Placement
from edgefast import ir

_RESOURCES = {"requests": {"cpu": "10m", "memory": "48Mi"}}
_READY_GRACE = 10_000  # milliseconds that the answer may come later than the drain's end
_STOP_GRACE = 30_000  # milliseconds from there to SIGKILL


def render_shutdown_manager(infra: ir.Infra, place: Placement) -> Manifest:
    """Return the container."""
    timeout = seconds_text(drain_time(infra))
    container: Manifest = {
        "name": SHUTDOWN,
        "image": infra.pod.image or place.image,
        "args": [
            "shutdown-manager",
            *("--ready-timeout", seconds_text(drain_time(infra) + _READY_GRACE)),
        ],
        "ports": [{"name": "shutdown", "containerPort": SHUTDOWN_PORT, "protocol": "TCP"}],
        "resources": _RESOURCES,
        "startupProbe": _probe(period=1, failures=60),
        "livenessProbe": _probe(period=10, failures=6),
        "lifecycle": {
            "preStop": {
                "exec": {
                    "command": [
                        *("edgefast", "shutdown"),
                        *("--drain-timeout", timeout),
                        *("--min-drain", seconds_text(infra.min_drain)),
                    ]
                }
            }
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "shutdown", "mountPath": "/tmp"}],
    }
    if place.pull_policy:
        container["imagePullPolicy"] = place.pull_policy
    return container


def shutdown_volumes() -> list[Manifest]:
    """Return the volume of the file that says that the drain is over."""
    return [{"name": "shutdown", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]


def drain_time(infra: ir.Infra) -> int:
    """Return the longest that a drain may take, in milliseconds; class and Gateway may disagree in it."""
    return max(infra.drain_timeout, infra.min_drain)


def grace_period(infra: ir.Infra) -> int:
    """Return terminationGracePeriodSeconds: the drain and what comes after it."""
    return -(-(drain_time(infra) + _STOP_GRACE) // 1000)


def seconds_text(milliseconds: int) -> str:
    """Return seconds as the command line takes them."""
    return f"{milliseconds / 1000:g}"


def _probe(*, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": "/healthz", "port": SHUTDOWN_PORT, "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": min(period, 5),
        "failureThreshold": failures,
    }
