"""Mistakes: from "apply returned" to the condition that says what is wrong, with 200 kinds of invalid HTTPRoute at once.

In: a Gateway under load or not. Out: lines of a table. Sound routes are there as well; that they are not harmed is a test
(tests/cluster/test_tenants_invalid.py). Must never: count a condition of an older generation.
"""

import time

from cluster.installed import applications, edge_proxy
from cluster.invalid import Ground, certificate_of, ground_gateways, ground_objects
from cluster.invalid_routes import route_cases
from cluster.invalid_statuses import apply_all, wait_told
from cluster.under_load import UnderLoad


def measure_mistakes(site: UnderLoad) -> list[str]:
    """Make all mistakes, mend them, and take them away again."""
    made, system = site.made, site.namespace
    made.config["extensionApis"] = {"enableBackend": True}
    made.helm("upgrade")
    with applications(site.world, "bad", "other") as (namespace, other):
        merged = f"{system}-merged"
        certificate = certificate_of(site.world)
        ground = Ground(namespace, other, "main", merged, made.controller, certificate)
        cases = list(route_cases(ground))
        made.admin.apply(
            edge_proxy(system, "merged", mergeGateways=True),
            made.gateway_class(merged, (system, "merged")),
            *ground_objects(ground),
            *ground_gateways(ground),
        )
        made.address(namespace, "main")
        lines = ["| at once | applied in s | every condition there after s |", "|---|---|---|"]
        for what, wrong in (("mistakes", True), ("mended", False)):
            began = time.monotonic()
            apply_all(
                made, [one for case in cases for one in (case.wrong if wrong else case.right)]
            )
            applied = time.monotonic()
            wait_told(made, namespace, cases, wrong=wrong)
            told = time.monotonic()
            lines.append(f"| {len(cases)} {what} | {applied - began:.1f} | {told - applied:.1f} |")
    return lines
