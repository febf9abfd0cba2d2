"""One origin and one HTTPS port for all tests of a module; a module's `HTTP` has the settings of its port's EdgeProxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from origin.recording import RecordingOrigin
from wire.tls.port import TlsPort


@pytest.fixture(scope="module")
def port(origin: RecordingOrigin, request: pytest.FixtureRequest) -> Iterator[TlsPort]:
    """A proxy with one HTTPS port."""
    with TlsPort(origin, http=getattr(request.module, "HTTP", None)) as running:
        yield running


@pytest.fixture(scope="module")
def trusted(port: TlsPort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The authority's certificate as a file."""
    file = tmp_path_factory.mktemp("trusted") / "ca.pem"
    file.write_bytes(port.authority.pem)
    return file
