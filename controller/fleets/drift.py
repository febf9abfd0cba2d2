"""Drift: the part of a live object that the controller compares.

In: a live object and the manifest that was applied.
Out: the live values of the fields in the manifest. They are recorded after applying and compared
later. The server normalizes quantities and adds defaults, and other fields belong to other owners.
Must never: compare a manifest with a live object directly.
"""

from __future__ import annotations

from typing import Any


def project(live: Any, wanted: Any) -> Any:
    """Return what `live` has where `wanted` has something; None where it has nothing."""
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            return live
        return {key: project(live.get(key), value) for key, value in wanted.items()}
    if isinstance(wanted, list):
        return _project_list(live, wanted)
    return live


def _project_list(live: Any, wanted: list[Any]) -> Any:
    if not isinstance(live, list) or not all(isinstance(one, dict) for one in (*live, *wanted)):
        return live
    names = [one.get("name") for one in wanted]
    if all(names) and len(set(names)) == len(names):
        # A map by name, as containers, variables, volumes and ports are: others may add to it.
        there = {one.get("name"): one for one in live}
        return [project(there.get(one["name"]), one) for one in wanted]
    if len(live) != len(wanted):
        return live
    return [project(one, other) for one, other in zip(live, wanted, strict=True)]
