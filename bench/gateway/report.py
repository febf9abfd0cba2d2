"""The report of a run: tables with ratios, plots, and where edgefast loses.

In: the JSON of a run (raw.json). Out: README.md and SVG files beside it. Must never: compare figures of two runs.
`python -m bench.gateway.report FOLDER` writes the report of a folder again.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.gateway.plot import draw_bars, draw_lines, draw_steps

OURS = "edgefast"
#: The figure of each test that is drawn, and what its series have across.
DRAWN = {
    "attached-routes": ("CPU of the controller, s", "s"),
    "propagation": ("mean ms", "route"),
    "traffic": ("CPU of the proxy for a request, us", ""),
    "route-changes": ("wrong answers", ""),
    "failover": ("wrong answers with defaults, %", ""),
    "rollouts": ("wrong answers, rollout of the proxies", ""),
    "route-scale": ("last one served, s after its create", "s"),
    "listener-sets": ("last ones served, s after the last create", ""),
}
#: Figures that describe the test, or the load, and not a gateway.
_PLAIN = ("routes", "changes", "ListenerSets", "requests", "all created after s")
_MORE_IS_BETTER = ("requests/s",)
_CLOSE = 0.05

_Figures = Mapping[str, Mapping[str, float]]  # figure -> gateway -> value


def write_report(folder: Path, run: Mapping[str, Any]) -> str:
    """Write README.md and the plots to a folder; return the text of the page."""
    gateways: Mapping[str, Any] = run["gateways"]
    names = [test for test in DRAWN if any(_of(one, test) for one in gateways.values())]
    lost: list[str] = []
    parts: list[str] = []
    for test in names:
        figures = _by_figure(gateways, test)
        parts += [f"## {test}", "", *_table(gateways, figures), ""]
        parts += _plots(folder, gateways, test, figures)
        parts += _failures(gateways, test)
        lost += [f"- {test}: {line}" for line in _losses(figures)]
    titles = ", ".join(f"{one['title']} {one['version']}" for one in gateways.values())
    text = "\n".join(
        [
            f"# Gateways, {run['date']}",
            "",
            f"The tests of gateway-api-bench at {run['scale']:g} of its size, by `make bench-gateways`: {titles}.",
            "Each gateway ran in its own test cluster on one machine, with one controller and one proxy with one worker.",
            "Compare within this page only: ratios are edgefast / the other gateway in the same run. [raw.json](raw.json) has all figures.",
            "",
            run["machine"],
            "",
            *_warnings(run),
            "## Where edgefast loses",
            "",
            *(lost or ["edgefast loses in no figure of this run by more than 5 %."]),
            "",
            *parts,
        ]
    )
    text = text.rstrip("\n") + "\n"
    (folder / "README.md").write_text(text)
    return text


def _warnings(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader must know before the figures."""
    if run["scale"] < 1:
        yield f"**Reduced size**: {run['scale']:g} of the objects and times of gateway-api-bench."
        yield ""
    load = re.search(r"load ([\d.]+) at start", run["machine"])
    cpus = re.search(r"(\d+) CPUs", run["machine"])
    if load and cpus and float(load[1]) > int(cpus[1]):
        yield "**Busy machine**: other programs took the processor, so times and CPU are too high for all. Ratios are noisy."
        yield ""


def _of(gateway: Mapping[str, Any], test: str) -> Mapping[str, Any] | None:
    return next((one for one in gateway["results"] if one["test"] == test), None)


def _by_figure(gateways: Mapping[str, Any], test: str) -> _Figures:
    found: dict[str, dict[str, float]] = {}
    for name, gateway in gateways.items():
        for figure, value in (_of(gateway, test) or {"figures": {}})["figures"].items():
            found.setdefault(figure, {})[name] = value
    return found


def _table(gateways: Mapping[str, Any], figures: _Figures) -> list[str]:
    others = [name for name in gateways if name != OURS]
    titles = [one["title"] for one in gateways.values()]
    ratios = [f"edgefast / {gateways[name]['title']}" for name in others]
    lines = [
        f"| | {' | '.join([*titles, *ratios])} |",
        "|---" + "|---:" * (len(titles) + len(ratios)) + "|",
    ]
    for figure, values in figures.items():
        cells = [f"{values[name]:g}" if name in values else "-" for name in gateways]
        cells += [_ratio(figure, values, name) for name in others]
        lines.append(f"| {figure} | {' | '.join(cells)} |")
    return lines


def _ratio(figure: str, values: Mapping[str, float], other: str) -> str:
    if _is_plain(figure) or not values.get(other) or OURS not in values:
        return ""
    return f"{values[OURS] / values[other]:.2f}"


def _is_plain(figure: str) -> bool:
    return figure in _PLAIN or figure.startswith("requests, ")


def _losses(figures: _Figures) -> Iterator[str]:
    for figure, values in figures.items():
        if _is_plain(figure) or OURS not in values:
            continue
        ours = values[OURS]
        for name, value in values.items():
            worse = (
                ours < value * (1 - _CLOSE)
                if figure in _MORE_IS_BETTER
                else ours > value * (1 + _CLOSE)
            )
            if name != OURS and worse:
                yield f"{figure}: {ours:g}, {name} {value:g}"


def _plots(
    folder: Path, gateways: Mapping[str, Any], test: str, figures: _Figures
) -> Iterator[str]:
    figure, across = DRAWN[test]
    title = {name: str(one["title"]) for name, one in gateways.items()}
    if values := figures.get(figure):
        bars = {title[name]: value for name, value in values.items()}
        (folder / f"{test}.svg").write_text(draw_bars(f"{test}: {figure}", bars))
        yield from (f"![{figure}]({test}.svg)", "")
    series: dict[str, dict[str, Any]] = {}
    for name, gateway in gateways.items():
        for label, points in (_of(gateway, test) or {"series": {}})["series"].items():
            series.setdefault(label, {})[title[name]] = points
    for label, lines in series.items():
        (folder / f"{test}-lines.svg").write_text(
            (draw_steps if across == "s" else draw_lines)(label, across, lines)
        )
        yield from (f"![{label}]({test}-lines.svg)", "")


def _failures(gateways: Mapping[str, Any], test: str) -> Iterator[str]:
    for gateway in gateways.values():
        if (result := _of(gateway, test)) and result["failed"]:
            yield f"{gateway['title']} did not pass the test: {result['failed'].splitlines()[0][:300]}"
            yield ""


if __name__ == "__main__":
    place = Path(sys.argv[1])
    write_report(place, json.loads((place / "raw.json").read_text()))
