"""Write the bill of materials of a wheel in CycloneDX JSON: the libraries in it, and its requirements.

In: the wheel; the versions and checksums that csrc/libraries pins. Out: a document of CycloneDX 1.6.
Must never: contain the time or the machine of the build; the same wheel has the same document.
"""

from __future__ import annotations

import hashlib
import tomllib
import uuid
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

LIBRARIES = Path(__file__).parents[1] / "csrc/libraries"
#: Folder of csrc/libraries -> cargo package with the source, name of the library, its licence (SPDX).
INSIDE = {
    "aws-lc": ("aws-lc-sys", "AWS-LC", "ISC AND (Apache-2.0 OR ISC) AND OpenSSL"),
    "nghttp2": ("libnghttp2-sys", "nghttp2", "MIT"),
}
SPECIFICATION = "1.6"


def make_sbom(wheel: Path) -> dict[str, Any]:
    """Return the document of a wheel."""
    metadata = _read_metadata(wheel)
    name, version = metadata["Name"], metadata["Version"]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    package = f"pkg:pypi/{name}@{version}"
    inside = [_make_inside(folder) for folder in INSIDE]
    needed = [_make_needed(Requirement(text)) for text in metadata.get_all("Requires-Dist") or ()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": package,
                "name": name,
                "version": version,
                "purl": package,
                "licenses": [{"license": {"id": metadata["License-Expression"]}}],
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "components": inside,
            }
        },
        "components": needed,
        "dependencies": [
            {
                "ref": package,
                "dependsOn": sorted({one["bom-ref"] for one in [*inside, *needed]}),
            }
        ],
    }


def _read_metadata(wheel: Path) -> Any:
    with zipfile.ZipFile(wheel) as archive:
        path = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(path).decode())


def _make_inside(folder: str) -> dict[str, Any]:
    """Return the component of a library that is linked into the wheel."""
    package, name, license = INSIDE[folder]
    locked = tomllib.loads((LIBRARIES / folder / "Cargo.lock").read_text())["package"]
    entry = next(one for one in locked if one["name"] == package)
    # The version of nghttp2 follows the version of its cargo package.
    version = entry["version"].partition("+")[2] or entry["version"]
    return {
        "type": "library",
        "bom-ref": f"pkg:cargo/{package}@{entry['version']}",
        "name": name,
        "version": version,
        "purl": f"pkg:cargo/{package}@{entry['version']}",
        "licenses": [{"expression": license}],
        "hashes": [{"alg": "SHA-256", "content": entry["checksum"]}],
        "properties": [{"name": "edgefast:linked", "value": "static, symbols hidden"}],
    }


def _make_needed(required: Requirement) -> dict[str, Any]:
    """Return the component of a requirement; pip selects its version at installation."""
    component = {
        "type": "library",
        "bom-ref": f"{required}",
        "name": required.name,
        "purl": f"pkg:pypi/{required.name.lower()}",
        "scope": "optional" if required.marker and "extra" in str(required.marker) else "required",
        "properties": [{"name": "edgefast:required", "value": str(required.specifier)}],
    }
    if required.marker:
        marker = {"name": "edgefast:marker", "value": str(required.marker)}
        component["properties"] = [*component["properties"], marker]
    return component
