"""cert-manager with ACME HTTP-01 through the proxies of Ingresses: issued and renewed under load without a failed request."""

from __future__ import annotations

import ssl

from cryptography import x509

from cluster.cert_manager import GROUP, cert_manager
from cluster.ingress_site import Site, ingress, open_site
from cluster.installed import Manifest
from cluster.world import netns
from cluster.world.waiting import wait_until
from cluster.world.world import World

_SECONDS = 120.0
_SECRET = "shop-tls"


def _with_certificate(site: Site) -> Manifest:
    """Return the Ingress of the shop with a certificate of the Issuer."""
    made = ingress(site.app, "shop", site.adopted, "shop.example", "one")
    made["metadata"]["annotations"]["cert-manager.io/issuer"] = "acme"
    made["spec"]["tls"] = [{"hosts": ["shop.example"], "secretName": _SECRET}]
    return made


def _certificate_path(site: Site) -> str:
    return f"/apis/{GROUP}/namespaces/{site.app}/certificates/{_SECRET}"


def _is(found: Manifest | None, kind: str) -> bool:
    conditions = ((found or {}).get("status") or {}).get("conditions") or []
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


def _serial(site: Site, address: str) -> int:
    """Return the serial number of the certificate that shop.example has; 0 without one."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        sock = netns.connect(site.world.client.in_netns, address, 443, 10)
        with sock, context.wrap_socket(sock, server_hostname="shop.example") as secure:
            shown = secure.getpeercert(binary_form=True)
    except OSError:
        return 0
    return x509.load_der_x509_certificate(shown).serial_number if shown else 0


def test_certificates_are_issued_and_renewed_under_load(world: World) -> None:
    with open_site(world, "certificates") as site:
        site.admin.apply(
            ingress(site.app, "steady", site.adopted, "steady.example", "one"),
            ingress(site.app, "shop", site.adopted, "shop.example", "one"),
        )
        address = site.address("steady")
        site.address("shop")
        plain = world.client.load(
            f"http://{address}", ["steady.example", "shop.example"], 100.0, expected=(200, 308)
        )
        with cert_manager(world, address) as acme, plain as answers:
            answers.wait_more(50)
            site.admin.apply(acme.issuer(site.app, site.adopted))
            issuer = f"/apis/{GROUP}/namespaces/{site.app}/issuers/acme"
            site.admin.wait(issuer, lambda found: _is(found, "Ready"), _SECONDS)
            site.admin.apply(_with_certificate(site))
            path = _certificate_path(site)
            site.admin.wait(path, lambda found: _is(found, "Ready"), _SECONDS)
            wait_until(lambda: _serial(site, address), _SECONDS)
            first = _serial(site, address)
            secure = world.client.load(f"https://{address}", ["shop.example"], 50.0)
            with secure as over_tls:
                over_tls.wait_more(50)
                # As `cmctl renew` does.
                condition = {
                    "type": "Issuing",
                    "status": "True",
                    "reason": "ManuallyTriggered",
                    "message": "renewed by a test",
                }
                known = site.admin.get(path)["status"]["conditions"]
                status = {"status": {"conditions": [*known, condition]}}
                site.admin.patch(f"{path}/status", status)
                wait_until(lambda: _serial(site, address) not in (0, first), _SECONDS)
                over_tls.wait_more(100)
            answers.wait_more(50)
            assert site.admin.get(path)["status"]["revision"] == 2
        assert not answers.unexpected(200, 308), answers.unexpected(200, 308)
        assert not over_tls.unexpected(200), over_tls.unexpected(200)
        # cert-manager removes the Ingress of a solved challenge.
        names = {one["metadata"]["name"] for one in site.admin.items(site.path())}
        assert names == {"steady", "shop"}
