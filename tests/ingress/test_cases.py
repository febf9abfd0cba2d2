"""The cases, by the naive evaluator and by real nginx."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from ingress.cases import FOLDER, Case, check, read_cases
from ingress.naive import Evaluator
from ingress.naive.canary import UndecidedShare
from ingress.nginx_oracle import NginxOracle
from ingress.origin import Origin

CASES = list(read_cases())


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    made = Origin()
    yield made
    made.close()


def test_each_file_of_the_suite_has_a_case() -> None:
    """42 files and a folder of annotations, 46 files and three folders of settings."""
    count = {part.name: len(list(part.glob("*.yaml"))) for part in FOLDER.iterdir()}
    assert count == {"annotations": 43, "settings": 49}


@pytest.mark.pure
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_evaluator_answers_as_expected(case: Case) -> None:
    evaluator = Evaluator(case.objects)
    for request, expected in case.requests:
        if expected.get("undecided"):
            with pytest.raises(UndecidedShare):
                evaluator.answer(request)
        else:
            check(expected, evaluator.answer(request))


@pytest.mark.wire
@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.without_nginx], ids=lambda case: case.name
)
def test_nginx_answers_as_expected(case: Case, origin: Origin) -> None:
    with NginxOracle(case.objects, origin) as nginx:
        for request, expected in case.requests:
            if not expected.get("undecided"):
                check(expected, nginx.answer(request))
