"""Headers about the certificate of a client, as explain shows them."""

from __future__ import annotations

from typing import Any

import pytest

from edgefast import ir
from edgefast.explain.client import drop_untrusted, find_client
from edgefast.explain.forwarded import write_head
from edgefast.explain.head import Head, scan_head

pytestmark = pytest.mark.pure

NGINX = ("ssl-client-cert", "ssl-client-issuer-dn", "ssl-client-subject-dn", "ssl-client-verify")
STRICT = ir.ListenerTls(certificates=("a",), client_ca="ca")
LOOSE = ir.ListenerTls(certificates=("a",), client_ca="ca", client_insecure_fallback=True)
NONE = ir.ListenerTls(certificates=("a",))
SENT = "X-Forwarded-Client-Cert: old\r\nssl-client-verify: forged\r\nSSL_Client_Cert: forged\r\n"


def lines(rule: ir.ListenerTls, **about: Any) -> list[str]:
    http = ir.HttpSettings(forwarded=ir.ForwardedHeaders(**about), underscores="Allow")
    raw = f"GET / HTTP/1.1\r\nhost: a.test\r\n{SENT}\r\n".encode()
    head = scan_head(raw, http, tls=True, source="192.0.2.1")
    assert isinstance(head, Head)
    client = find_client(head, "192.0.2.1", http.client_address, tls=True, rule=rule)
    head = drop_untrusted(head, client, http.forwarded)
    wanted = ir.Rule(route="ns/web", index=0, backends=())
    found = write_head(head, wanted, None, 0, client, http)
    return [one for one in found if "client" in one.lower()]


@pytest.mark.parametrize(
    ("mode", "strict", "loose"),
    [
        ("sanitize", [], []),
        ("forward", ["X-Forwarded-Client-Cert: old"], []),
        ("append", ['x-forwarded-client-cert: old,Hash=<SHA-256>;Subject="<subject>"'], []),
        ("set", ['x-forwarded-client-cert: Hash=<SHA-256>;Subject="<subject>"'], []),
        ("always", ["X-Forwarded-Client-Cert: old"], ["X-Forwarded-Client-Cert: old"]),
    ],
)
def test_modes(mode: str, strict: list[str], loose: list[str]) -> None:
    about = {"names": NGINX, "client_cert": mode, "client_cert_details": ("subject",)}
    own = [
        "ssl-client-verify: SUCCESS",
        "ssl-client-subject-dn: <subject>",
        "ssl-client-issuer-dn: <issuer>",
        "ssl-client-cert: <certificate>",
    ]
    assert lines(STRICT, **about) == [*strict, *own]
    assert lines(LOOSE, **about) == [*loose, "ssl-client-verify: NONE"]
    assert lines(NONE, **about) == loose
