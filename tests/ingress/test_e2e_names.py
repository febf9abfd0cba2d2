"""The end-to-end files of ingress-nginx by name, each with our cases and what edgefast makes of them.

In: `cases/`, one file for each file of the suite. Out: e2e_names.txt: by file and case how many requests get the answer of
ingress-nginx, how many are out of the comparison, and the problems that edgefast reports. A request with another answer needs an error
or a warning of its objects, or a documented difference here.
Must never: contain text of that suite.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from edgefast.api.decode.decode import decode_api_object
from edgefast.api.snapshot import Snapshot
from edgefast.explain import serve_translation
from edgefast.translate import Settings, translate
from edgefast.translate.settings import IngressSettings
from ingress.cases import FOLDER, Case, read_cases
from ingress.comparison import wrong_kind
from ingress.differ import Ask, Unknown
from ingress.message import BACKEND_STATUS, Request, answer_auth
from ingress.naive.canary import UndecidedShare
from ingress.naive.objects import CONTROLLER
from ingress.standard_objects import tls_secret
from ingress.test_served import _Evaluator, ask_table, prepare, reduced

pytestmark = pytest.mark.pure

DOCS = Path(__file__).parents[2] / "docs"
LIST = Path(__file__).with_name("e2e_names.txt")
_HEAD = "# Made by `pytest tests/ingress/test_e2e_names.py --update-goldens`; do not edit.\n"
_SOURCE = re.compile(r"^# Source of the case: test/e2e/(\S+[.]go)$", re.MULTILINE)
#: Cases with another answer and without a problem, and the difference in docs/guides/ingress.md.
DIFFERENCES = {
    "annotations/redirect-3": "redirects with the status 300, 304, 305 or 306 have a Location",
    "annotations/relativeredirects-0": "a path of `permanent-redirect` stays a path in the Location",
    "annotations/satisfy-3": "`any` with a denylist alone answers 403",
    "settings/forwarded_headers-2": "addresses in X-Forwarded-For have no space between them",
    "settings/global_access_block-0": "`block-cidrs` does not apply to the 404 of a host without any Ingress",
}


def _judge(case: Case) -> tuple[Counter[str], list[str]]:
    """Return the number of requests by outcome, and the problems."""
    objects = [*case.objects, tls_secret("ingress-nginx", "default", "ingress.local")]
    decoded = [decode_api_object(one, one["kind"]) for one in objects]
    ingress = IngressSettings(certificate="ingress-nginx/default", controllers=(CONTROLLER,))
    translation = translate(Snapshot.of(decoded), Settings(ingress=ingress))
    problems = sorted(
        {
            f"{one.severity} {_setting(one.path)}: {one.reason}"
            for one in translation.problems
            if one.object is not None and one.object.kind in ("Ingress", "ConfigMap")
        }
    )
    evaluator = _Evaluator(objects)
    ask = ask_table(serve_translation(translation), objects)
    return Counter(_outcome(one, evaluator, ask) for one, _ in case.requests), problems


def _setting(path: str) -> str:
    """Return the name of an annotation or setting, or the path of a field."""
    found = re.search(r"\[(?:nginx[.]ingress[.]kubernetes[.]io/)?([^\[\]]*[a-z][^\[\]]*)\]$", path)
    return found[1] if found else path


def _outcome(request: Request, evaluator: _Evaluator, ask: Ask) -> str:
    if request.body or request.value(BACKEND_STATUS):
        return "not compared"
    asked = prepare(request)
    try:
        expected = evaluator.answer(asked)
        if expected.step == "limit":  # an explanation counts no requests
            return "not compared"
        if expected.auth is not None and not 200 <= answer_auth(asked.headers)[0] < 300:
            return "not compared"
        ask(asked)
    except (Unknown, UndecidedShare):
        return "not compared"
    return f"other {kind}" if (kind := wrong_kind(reduced(expected), ask, asked)) else "same"


def _render() -> tuple[str, list[str]]:
    """Return the list, and the cases whose difference has no reason."""
    names = {
        str(path.relative_to(FOLDER).with_suffix("")): _SOURCE.search(path.read_text())
        for path in sorted(FOLDER.rglob("*.yaml"))
    }
    lines, unexplained, shown = [_HEAD], [], ""
    for case in read_cases():
        name, _, number = case.name.rpartition("-")
        if name != shown:
            source = names[name]
            assert source is not None, name
            lines.append(f"{source[1]}\n")
            shown = name
        outcomes, problems = _judge(case)
        text = ", ".join(f"{count} {kind}" for kind, count in sorted(outcomes.items()))
        lines.append(f"  {number}: {text}{''.join(f'; {one}' for one in problems)}\n")
        differs = any(kind.startswith("other") for kind in outcomes)
        if differs and not problems and case.name not in DIFFERENCES:
            unexplained.append(f"{case.name}: {text}")
    return "".join(lines), unexplained


def test_each_case_is_served_or_has_a_reason(pytestconfig: pytest.Config) -> None:
    text, unexplained = _render()
    if pytestconfig.getoption("--update-goldens"):
        LIST.write_text(text)
    assert unexplained == []
    assert text.splitlines() == LIST.read_text().splitlines()


def test_every_difference_is_of_a_case_and_documented() -> None:
    assert DIFFERENCES.keys() <= {one.name for one in read_cases()}
    page = " ".join((DOCS / "guides" / "ingress.md").read_text().lower().split())
    for difference in DIFFERENCES.values():
        assert difference.lower() in page, difference
