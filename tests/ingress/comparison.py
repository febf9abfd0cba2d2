"""`python -m ingress.comparison`: count the wrong answers of converted Ingresses, of ingress2gateway and of `edgefast convert`.

In: seeds of random sets, requests for each. Out: a table of wrong answers by kind on standard output, and a file in bench/results.
edgefast serves every output, and the naive evaluator of ingress-nginx gives the expected answers. Requests and annotations that
edgefast does not serve (`test_served.LEFT_OUT`, `limit_of`) are left out for all converters.
Must never: compare converters by different requests.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import yaml

from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.explain import serve_translation
from edgefast.translate import Settings, translate
from ingress import converters
from ingress.assistance import join_gateways, resolve_ports
from ingress.converters import Convert, Converted, convert_most
from ingress.differ import Ask, Objects, Unknown
from ingress.generate import Generator
from ingress.message import Answer, Request, answer_auth
from ingress.naive.canary import UndecidedShare
from ingress.naive.objects import Objects as NaiveObjects
from ingress.nginx_servers import without_duplicates
from ingress.standard_objects import tls_secret
from ingress.test_served import LEFT_OUT, ask_table, evaluate, limit_of, prepare, reduced

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
KINDS = ("status", "Location", "Service", "path", "query", "Host", "headers")
#: edgefast refuses an auth-url with variables: it closes the location.
WITHOUT = {**{name: values for name, (values, _) in LEFT_OUT.items()}, "auth-url": r".*[$].*"}
MAX_SETS, MAX_REQUESTS = 1000, 10_000
_INPUTS = ("Ingress", "IngressClass")


@dataclass
class Tally:
    """What one converter got wrong."""

    title: str
    convert: Convert
    before: Callable[[Objects], Objects] = lambda objects: objects
    after: Callable[[Objects], Objects] = lambda documents: documents
    requests: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    ingresses: int = 0
    left_out: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """Number of wrong answers."""
        return sum(self.wrong.values())


def run(tallies: Iterable[Tally], seeds: Iterable[int], requests: int) -> None:
    """Ask each converter's output the same requests."""
    tallies = list(tallies)
    for seed in seeds:
        generator = Generator(seed, without=WITHOUT)
        objects = without_duplicates(with_paths(generator.objects()))
        objects.append(tls_secret("ingress-nginx", "default", "ingress.local"))
        asked = list(expected_answers(objects, generator.requests(requests)))
        ours = sum(one["kind"] == "Ingress" for one in objects)
        for tally in tallies if asked else ():
            found = convert_most(tally.convert, tally.before(objects))
            tally.ingresses += ours
            tally.left_out += len(found.left_out)
            tally.errors.update(map(_sort_of_error, found.errors))
            ask = serve(objects, replace(found, documents=tally.after(found.documents)))
            for request, expected in asked:
                tally.requests += 1
                if kind := wrong_kind(expected, ask, request):
                    tally.wrong[kind] += 1


def with_paths(objects: Objects) -> Objects:
    """Return objects that an API server admits: an empty path needs the type ImplementationSpecific."""
    for one in objects:
        for rule in one["spec"].get("rules", ()) if one["kind"] == "Ingress" else ():
            for path in rule.get("http", {"paths": ()})["paths"]:
                path["path"] = path["path"] or "/"
    return objects


def expected_answers(
    objects: Objects, requests: Iterable[Request]
) -> Iterator[tuple[Request, Answer]]:
    """Give the requests that a compiled table can judge, with the evaluator's answers."""
    naive = NaiveObjects(objects)
    ingresses = naive.ingresses()
    hosts = {rule.get("host", "") for one in ingresses for rule in one["spec"].get("rules", ())}
    forwarded = naive.setting("use-forwarded-headers") == "true"
    believed = naive.setting("enable-real-ip") == "true"
    evaluator = evaluate(objects)
    for request in map(prepare, requests) if ingresses else ():
        told = any(request.value(one) for one in ("x-forwarded-proto", "x-forwarded-host"))
        if limit_of(request, hosts, forwarded=forwarded) or (believed and told):
            continue
        try:
            answer = evaluator.answer(request)
        except UndecidedShare:
            continue
        if answer.auth is None or 200 <= answer_auth(request.headers)[0] < 300:
            yield request, reduced(answer)


def serve(objects: Objects, found: Converted) -> Ask:
    """Return the compiled table of a converter's output, with the objects that the Ingresses need."""
    rest = [one for one in objects if one["kind"] not in _INPUTS]
    made = {_key(one) for one in found.documents}
    documents = [*found.documents, *(one for one in rest if _key(one) not in made)]
    classes = {
        one["spec"]["gatewayClassName"] for one in found.documents if one["kind"] == "Gateway"
    }
    documents += [
        _class(name) for name in sorted(classes) if ("GatewayClass", "", name) not in made
    ]
    decoded = decode_documents(
        yaml.dump_all(documents, Dumper=yaml.CSafeDumper).encode(), "converted.yaml"
    )
    closed = [one.closed for one in decoded.refused if one.closed is not None]
    snapshot = Snapshot.of([*decoded.objects, *closed])
    translation = translate(snapshot, Settings(adopt=True))
    if not translation.ir.fleets:
        return _refuse
    return ask_table(serve_translation(translation), objects)


def _refuse(request: Request) -> Answer:
    """Nothing listens: no answer."""
    return Answer(0)


def _key(one: dict[str, Any]) -> tuple[str, str, str]:
    meta = one["metadata"]
    return one["kind"], meta.get("namespace", ""), meta["name"]


def _class(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": name},
        "spec": {"controllerName": "example.com/converted"},
    }


def wrong_kind(expected: Answer, ask: Ask, request: Request) -> str:
    """Return the first kind in which an answer is wrong, "" if it is right."""
    try:
        got = ask(request)
    except Unknown:  # it asks an authentication service where none is expected
        return "status"
    return next(
        (name for name in KINDS if _part(expected, name) != _part(got, name)),
        "",
    )


def _part(answer: Answer, kind: str) -> object:
    path, mark, query = answer.target.partition("?")
    host = dict(answer.sent).get("host")
    return {
        "status": answer.status,
        "Location": answer.location,
        "Service": answer.backend,
        "path": path,
        "query": mark + query,
        "Host": host,
        "headers": answer.sent,
    }[kind]


def _sort_of_error(text: str) -> str:
    """Return an error without the names of objects."""
    line = next((one for one in text.splitlines() if one.strip()), "no text")
    return re.sub(r"\"[^\"]*\"|\b(shop|web)/\S+|i[0-9]+", "...", line)[:160]


# ---- the table ----


def render(tallies: Iterable[Tally]) -> str:
    """Return a table in Markdown."""
    tallies = list(tallies)
    lines = [
        f"| | {' | '.join(one.title for one in tallies)} |",
        "|---|" + "---:|" * len(tallies),
        _row("requests", [one.requests for one in tallies]),
        _row("wrong answers", [one.total for one in tallies]),
        *(_row(f"wrong {kind}", [one.wrong[kind] for one in tallies]) for kind in KINDS),
        _row("Ingresses", [one.ingresses for one in tallies]),
        _row("Ingresses left out", [one.left_out for one in tallies]),
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, values: Iterable[int]) -> str:
    return f"| {name} | {' | '.join(f'{one:,}' for one in values)} |"


def render_errors(tallies: Iterable[Tally]) -> str:
    """Return why Ingresses were left out."""
    lines = []
    for one in tallies:
        lines += [f"- {one.title}: {count:,}: {text}" for text, count in one.errors.most_common(20)]
    return "\n".join(lines) + "\n" if lines else ""


def make_tallies(program: str, folder: Path) -> list[Tally]:
    """Return what is compared; without `program`, edgefast alone."""
    ours = Tally("edgefast convert", converters.edgefast(folder))
    if not program:
        return [ours]
    theirs = converters.ingress2gateway(program, folder)
    helped = Tally("ingress2gateway, with help", theirs, resolve_ports, join_gateways)
    return [Tally("ingress2gateway, as printed", theirs), helped, ours]


def read_options(argv: list[str] | None) -> argparse.Namespace:
    """Options; values out of bounds end with status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m ingress.comparison", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--program", default="", help="ingress2gateway (default: the one of PATH)")
    parser.add_argument("--only-edgefast", action="store_true", help="without ingress2gateway")
    parser.add_argument("--sets", type=int, default=20, help="sets of Ingresses (default 20)")
    parser.add_argument("--requests", type=int, default=400, help="for each set (default 400)")
    parser.add_argument("--first", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--out", type=Path, help="file to write instead of bench/results/...")
    options = parser.parse_args(argv)
    if not 0 < options.sets <= MAX_SETS or not 0 < options.requests <= MAX_REQUESTS:
        parser.error(f"--sets is at most {MAX_SETS}, --requests at most {MAX_REQUESTS}")
    return options


def main(argv: list[str] | None = None) -> int:
    """Run the comparison and write its result."""
    options = read_options(argv)
    program = "" if options.only_edgefast else converters.find_ingress2gateway(options.program)
    seeds = range(options.first, options.first + options.sets)
    with tempfile.TemporaryDirectory() as folder:
        tallies = make_tallies(program, Path(folder))
        run(tallies, seeds, options.requests)
    text = render(tallies)
    click.echo(text, nl=False)
    now = datetime.now(UTC)
    stem = "convert" if options.only_edgefast else "ingress2gateway"
    out = options.out or RESULTS / f"{now:%Y-%m-%d}-{stem}.md"
    command = f'make bench-convert ARGS="{" ".join(argv or sys.argv[1:])}"'
    versions = f"tree {_revision()}" + (f"; {_version(program)}" if program else "")
    out.write_text(
        f"# Converted Ingresses, {now:%Y-%m-%d %H:%M} UTC\n\n{command}: seeds {seeds.start} to {seeds.stop - 1}; {versions}\n\n"
        f"{text}\n{render_errors(tallies)}"
    )
    click.echo(f"written to {os.path.relpath(out)}", err=True)
    return 0


def _revision() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _version(program: str) -> str:
    done = subprocess.run([program, "version"], capture_output=True, text=True, timeout=30)
    return " ".join((done.stdout or done.stderr).split())[:200]


if __name__ == "__main__":
    sys.exit(main())
