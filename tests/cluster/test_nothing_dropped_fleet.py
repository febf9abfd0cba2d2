"""Under a steady load: certificates change, the fleet is rolled, the release is upgraded, and no request notices."""

from __future__ import annotations

import base64
import copy
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.installed import Manifest, listener, route
from cluster.under_load import STEADY, UnderLoad, listeners_of, under_load
from cluster.world import netns
from cluster.world.crds import own_crds
from cluster.world.images import OWN_USER
from cluster.world.node.settings import Image
from cluster.world.pki import Pki
from cluster.world.waiting import wait_until
from cluster.world.world import World
from edgefast import __version__

ROTATIONS = 8
SECURE = "secure.example"
#: A release before this one, as far as a cluster can tell: other images, another format of tables.
OLD = "0.0.9"
_OTHER_FORMAT = """
import sys
from edgefast.table import format
format._RECORDS = format._RECORDS[:-1]
from {module} import main
sys.argv[0] = "{name}"
main()
"""


@pytest.fixture(scope="module")
def site(world: World) -> Iterator[UnderLoad]:
    """A release that looks like the one before this one."""
    for name, module in (
        ("edgefast", "edgefast.cli.main"),
        ("edgefast-controller", "controller.main"),
    ):
        code = _OTHER_FORMAT.format(module=module, name=name)
        env = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        world.image(f"{name}:{OLD}", Image((sys.executable, "-c", code), (), env, OWN_USER))
    with under_load(world, values=images_of(OLD)) as made:
        yield made


def images_of(tag: str) -> dict[str, Any]:
    """Return values of the chart that choose the images of a release."""
    return {
        "deployment": {"edgeGateway": {"image": {"tag": tag}}},
        "proxy": {"image": {"tag": tag}},
    }


def formats(site: UnderLoad) -> set[str]:
    """Return the images of the proxies there are."""
    return {pod["spec"]["containers"][0]["image"] for pod in site.proxies()}


def kinds(tag: str) -> list[Manifest]:
    """Return our kinds as a release has them: in the one before an EdgeProxy has no `http.via`."""
    found: list[Manifest] = copy.deepcopy(own_crds())
    if tag == OLD:
        del _http(next(one for one in found if one["spec"]["names"]["kind"] == "EdgeProxy"))["via"]
    return found


def _http(crd: Manifest) -> Manifest:
    (version,) = crd["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    found: Manifest = spec["properties"]["http"]["properties"]
    return found


@pytest.fixture
def old_kinds(site: UnderLoad) -> Iterator[str]:
    """The kinds of the release before; afterwards those of this one. Gives the path of EdgeProxy's."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/edgeproxies.gateway.edge.io"
    site.admin.apply(*kinds(OLD))
    assert "via" not in _http(site.admin.get(path))
    yield path
    site.admin.apply(*kinds(""))


def test_an_upgrade_from_the_release_before_and_back(site: UnderLoad, old_kinds: str) -> None:
    """Kinds first, then the release, as the page on upgrades says."""
    assert formats(site) == {f"edgefast:{OLD}"}
    for turn, tag in enumerate(("", OLD, "")):
        with site.load() as answers:
            site.admin.apply(*kinds(tag))
            assert ("via" in _http(site.admin.get(old_kinds))) == (tag != OLD)
            site.made.helm("upgrade", **images_of(tag))
            wanted = f"edgefast:{tag or __version__}"
            # The new controller rolls the proxies, which read none of the tables of the old one.
            wait_until(lambda wanted=wanted: formats(site) == {wanted}, 120)  # type: ignore[misc]
            site.world.workloads.wait_rollout(site.namespace, site.fleet)
            answers.wait_more(100)
            host = f"turn-{turn}.example"
            site.admin.apply(route(site.app, f"turn-{turn}", "eg", [host], service="two"))
            site.made.wait_status(site.address, host)
            site.made.gateway_of(site.app, "eg")
    # What the kinds of this release have besides is of use.
    site.shape(via="upgraded")
    wait_until(lambda: "upgraded" in str(site.made.ask(site.address, STEADY).body).lower())
    site.shape()


def test_the_fleet_is_rolled_twice(site: UnderLoad) -> None:
    for turn in ("once", "twice"):
        old = {pod["metadata"]["name"] for pod in site.proxies()}
        with site.load() as answers:
            site.shape(labels={"rolled": turn})
            wait_until(
                lambda old=old: not old & {pod["metadata"]["name"] for pod in site.proxies()},  # type: ignore[misc]
                90,
            )
            site.world.workloads.wait_rollout(site.namespace, site.fleet)
            answers.wait_more(100)
        assert all(pod["metadata"]["labels"]["rolled"] == turn for pod in site.proxies())


def test_certificates_of_listeners_are_rotated(site: UnderLoad, tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    site.admin.apply(
        secret(site.app, pki, 0), route(site.app, "secure", "eg", [SECURE], service="one")
    )
    https: Manifest = listener("https", 443, SECURE)
    https |= {"protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "secure"}]}}
    site.admin.patch(site.path("gateways", "eg"), listeners_of(https))
    site.made.gateway_of(site.app, "eg")
    wait_until(lambda: served(site) == issued(tmp_path, 0))
    client = site.world.client
    with (
        site.load(),
        client.load(
            f"https://{site.address}", [SECURE], rate=40, per_connection=5, paths=["/"]
        ) as answers,
    ):
        for turn in range(1, ROTATIONS + 1):
            site.admin.apply(secret(site.app, pki, turn))
            wait_until(lambda turn=turn: served(site) == issued(tmp_path, turn))  # type: ignore[misc]
            answers.wait_more(20)
    assert not answers.unexpected(200), answers.unexpected(200)
    site.admin.patch(site.path("gateways", "eg"), listeners_of())
    site.made.gateway_of(site.app, "eg")


def test_the_authority_of_the_stream_is_rotated(site: UnderLoad) -> None:
    """Announced, in force, the former one dropped: the times in between are put back by hand."""
    secret_path = f"/api/v1/namespaces/{site.namespace}/secrets/{site.made.release.base}-ca"
    first = bundle(site)
    with site.load(), site.no_table_shrinks():
        rotate = ["edgefast-controller", "certgen", "--rotate", "--namespace", site.namespace]
        rotate += ["--name", site.made.release.base]
        run_job(site, rotate)
        assert len(certificates(bundle(site))) == 2
        for trusted in (2, 1):
            past = {"since": base64.b64encode(b"2020-01-01T00:00:00+00:00").decode()}
            before = site.admin.get(secret_path)["data"]
            site.admin.patch(secret_path, {"data": past})
            # Whoever begins to lead looks after certificates first.
            site.restart_controllers()
            wait_until(
                lambda before=before: (
                    site.admin.get(secret_path)["data"]["tls.crt"] != before["tls.crt"]  # type: ignore[misc]
                    or len(certificates(bundle(site))) < 2
                ),
                60,
            )
            assert len(certificates(bundle(site))) == trusted
            wait_until(lambda: all_connected(site))
        assert not set(certificates(first)) & set(certificates(bundle(site)))
        # What proxies and controllers show each other now is of the new authority alone.
        site.restart_controllers()
        site.admin.apply(route(site.app, "after", "eg", ["after.example"], service="two"))
        site.made.wait_status(site.address, "after.example")
        site.made.gateway_of(site.app, "eg")


def secret(namespace: str, pki: Pki, turn: int) -> Manifest:
    """Return the Secret of the listener with its certificate of a turn."""
    pki.issue(f"turn-{turn}", SECURE, dns=[SECURE], server=True, client=False)
    data = {
        f"tls.{part}": base64.b64encode((pki.folder / f"turn-{turn}.{part}").read_bytes()).decode()
        for part in ("crt", "key")
    }
    meta = {"namespace": namespace, "name": "secure"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "type": "kubernetes.io/tls",
        "data": data,
    }


def issued(folder: Path, turn: int) -> bytes:
    """Return the certificate of a turn, DER."""
    return ssl.PEM_cert_to_DER_cert((folder / f"turn-{turn}.crt").read_text())


def served(site: UnderLoad) -> bytes:
    """Return the certificate that a proxy shows now, DER."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            netns.connect(site.world.network.client, site.address, 443, 5) as raw,
            context.wrap_socket(raw, server_hostname=SECURE) as made,
        ):
            return made.getpeercert(binary_form=True) or b""
    except OSError:
        return b""


def bundle(site: UnderLoad) -> str:
    """Return the authorities that are trusted, as the Secret of them says."""
    path = f"/api/v1/namespaces/{site.namespace}/secrets/{site.made.release.base}-ca"
    return base64.b64decode(site.admin.get(path)["data"]["ca.crt"]).decode()


def certificates(pem: str) -> list[str]:
    """Return the certificates of a bundle."""
    return [part for part in pem.split("-----BEGIN CERTIFICATE-----") if part.strip()]


def all_connected(site: UnderLoad) -> bool:
    """Whether every proxy hears a controller."""
    try:
        return all(
            site.metrics(pod["status"]["podIP"], "edgefast_xds_connected") == 1
            for pod in site.proxies()
        )
    except (OSError, KeyError):
        return False


def run_job(site: UnderLoad, command: list[str]) -> None:
    """Run a command in the controller's container, as an administrator would."""
    (pod, *_) = site.controllers()
    done = site.world.workloads.execute(site.namespace, pod, "edge-gateway", command)
    assert done.returncode == 0, done.stdout + done.stderr
