"""The page of annotations: the column of Traefik has the annotations that the source of its provider reads."""

from __future__ import annotations

import re
import zipfile

import pytest

from cluster.tools.crds import module_zip
from cluster.tools.versions import INGRESS_FILES
from tests.translate.ingress.annotation_page import ROWS, TEXT

pytestmark = pytest.mark.cluster

_MODULE = "github.com/traefik/traefik/v3"
_FILE = "pkg/provider/kubernetes/ingress-nginx/annotations.go"


def test_the_column_of_traefik_has_what_its_provider_reads() -> None:
    version = INGRESS_FILES[_MODULE]
    with zipfile.ZipFile(module_zip(f"{_MODULE}@{version}")) as archive:
        text = archive.read(f"{_MODULE}@{version}/{_FILE}").decode()
    read = set(re.findall(r'annotation:"nginx\.ingress\.kubernetes\.io/([a-z0-9-]+)"', text))
    assert f"Traefik {version.removeprefix('v')} " in TEXT
    assert read == {name for name, cells in ROWS.items() if not cells[1].startswith("no")}
