"""Mistakes in a cluster: all of them applied, and waited for until each is told, or told no more."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cluster.installed import GATEWAY, Installed, conditions_of
from cluster.invalid import Case


def apply_all(release: Installed, manifests: Sequence[Any]) -> None:
    """Apply several at a time, those that others need first."""
    first = [one for one in manifests if one["kind"] in ("Service", "RateLimitFilter")]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(release.admin.apply, first))
        list(pool.map(release.admin.apply, [one for one in manifests if one not in first]))


def wait_told(release: Installed, namespace: str, cases: list[Case], *, wrong: bool) -> None:
    """Wait until every case has its condition, or has it no more and is sound."""
    deadline = time.monotonic() + 180
    while True:
        path = f"/apis/{GATEWAY}/namespaces/{namespace}/httproutes"
        seen = {one["metadata"]["name"]: one for one in release.admin.items(path)}
        left = {
            case.name: list(conditions_of(seen.get(case.name)))
            for case in cases
            if not (_is_told if wrong else _is_healed)(case, seen.get(case.name))
        }
        if not left:
            return
        if time.monotonic() > deadline:
            shown = [f"{name}: {found}" for name, found in list(left.items())[:10]]
            raise AssertionError("\n".join([f"{len(left)} of {len(cases)}: {list(left)}", *shown]))
        time.sleep(0.1)


def _is_told(case: Case, found: Any) -> bool:
    wanted = {"type": case.type, "status": case.status, "reason": case.reason}
    return any(
        wanted.items() <= one.items()
        and one["message"]
        and one["observedGeneration"] == found["metadata"]["generation"]
        for one in conditions_of(found)
    )


def _is_healed(case: Case, found: Any) -> bool:
    """Whether Accepted is True, in the present generation, and nothing of the mistake is left."""
    conditions = list(conditions_of(found))
    generation = found["metadata"]["generation"]
    good = [one for one in conditions if one["type"] == "Accepted" and one["status"] == "True"]
    return (
        bool(good)
        and all(one["observedGeneration"] == generation for one in conditions)
        and not any((one["type"], one["reason"]) == (case.type, case.reason) for one in conditions)
        and not any(one["type"] == "Programmed" and one["status"] != "True" for one in conditions)
    )
