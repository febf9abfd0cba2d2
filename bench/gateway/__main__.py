"""`python -m bench.gateway` (root; tests/ on PYTHONPATH): the tests of gateway-api-bench, one gateway after another.

In: gateways, tests, a scale. Out: raw figures (raw.json), plots (SVG) and a report in a folder of bench/results. Each gateway
runs in its own world (test cluster). The report gives the reason when a gateway is missing or fails a test. Exit 1 when edgefast fails a test.
Must never: run beside another program that wants the processor, and call that a result.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.gateway.edgefast import EDGEFAST
from bench.gateway.envoy_gateway import ENVOY_GATEWAY_PRODUCT
from bench.gateway.report import write_report
from bench.gateway.result import Result
from bench.gateway.routes import attached_routes, listener_sets, propagation, route_scale
from bench.gateway.site import Product, Site
from bench.gateway.traffic import failover, rollouts, route_changes, traffic
from bench.machine import describe_machine
from cluster.tools.missing import MissingTool
from cluster.world.world import World

RESULTS = Path(__file__).parents[1] / "results"
PRODUCTS = {one.name: one for one in (EDGEFAST, ENVOY_GATEWAY_PRODUCT)}
#: In the order of a run. The tests with most objects come last.
TESTS: dict[str, Callable[[Site, float], Result]] = {
    "attached-routes": attached_routes,
    "propagation": propagation,
    "traffic": traffic,
    "route-changes": route_changes,
    "failover": failover,
    "rollouts": rollouts,
    "route-scale": route_scale,
    "listener-sets": listener_sets,
}


def main() -> int:
    """Run the tests and write the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description=__doc__)
    parser.add_argument("--gateways", default=",".join(PRODUCTS))
    parser.add_argument("--tests", default=",".join(TESTS))
    parser.add_argument(
        "--scale", type=float, default=1.0, help="1 is the size of gateway-api-bench"
    )
    parser.add_argument(
        "--out", type=Path, help="folder for the report instead of bench/results/..."
    )
    options = parser.parse_args()
    tests = options.tests.split(",")
    chosen = [PRODUCTS[name] for name in options.gateways.split(",")]
    run: dict[str, Any] = {
        "date": str(datetime.datetime.now(datetime.UTC).date()),
        "machine": describe_machine([]),
        "scale": options.scale,
        "gateways": {},
    }
    out = options.out or RESULTS / f"{run['date']}-gateways"
    out.mkdir(parents=True, exist_ok=True)
    for product in chosen:
        results = _measure(product, tests, options.scale)
        run["gateways"][product.name] = {
            "title": product.title,
            "version": product.version(),
            "results": [one.as_json() for one in results],
        }
        (out / "raw.json").write_text(json.dumps(run, indent=1) + "\n")
    print(write_report(out, run))
    ours = run["gateways"].get(EDGEFAST.name, {"results": []})["results"]
    return 1 if any(one["failed"] for one in ours) else 0


def _measure(product: Product, tests: list[str], scale: float) -> list[Result]:
    results: list[Result] = []
    world = World.make()
    try:
        world.start()
        with product.install(world) as installed:
            site = Site(world=world, installed=installed, app=world.namespace_for_pods("app"))
            site.bring_up()
            for name in tests:
                print(f"{product.name}: {name}", file=sys.stderr, flush=True)
                results.append(_run(name, site, scale))
    except (MissingTool, RuntimeError, TimeoutError) as error:
        print(f"{product.name}: {error}", file=sys.stderr)
        done = {one.test for one in results}
        results += [Result(name, failed=str(error)) for name in tests if name not in done]
    finally:
        kept = world.stop(keep_logs=any(one.failed for one in results))
        if kept is not None:
            print(f"{product.name}: logs of the world: {kept}", file=sys.stderr)
    return results


def _run(name: str, site: Site, scale: float) -> Result:
    try:
        result = TESTS[name](site, scale)
    except (RuntimeError, TimeoutError, OSError) as error:
        result = Result(name, failed=f"{type(error).__name__}: {error}")
    print(f"  {result.failed or result.figures}", file=sys.stderr, flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
