"""An Ingress with annotations of ingress-nginx behind a real proxy: headers about the client, an authorization service, limits."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from origin.answers import answer_target, response
from origin.message import Message
from origin.recording import RecordingOrigin
from origin.scripted import ScriptedOrigin, serving
from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

PREFIX = "nginx.ingress.kubernetes.io/"


def ingress(name: str, **annotations: str) -> make.Object:
    """An Ingress of all paths of a host."""
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {
                PREFIX + key.replace("_", "-"): value for key, value in annotations.items()
            },
        },
        "spec": {
            "ingressClassName": "nginx",
            "rules": [{"host": f"{name}.test", "http": {"paths": [path]}}],
        },
    }


def wait_for(holds: Callable[[], bool]) -> None:
    """Poll until a condition is true, within a deadline."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def arguments(port: int) -> list[str]:
    """Options that serve the class nginx at a port."""
    return ["--ingress-class", "nginx", "--ingress-http", str(port)]


def judge(message: Message) -> bytes:
    """Answer as the cookie of the request asks."""
    status = int((message.value(b"cookie") or b"s=401").partition(b"=")[2])
    headers = [("Set-Cookie", "seen=1"), ("X-User", "ann"), ("WWW-Authenticate", "Cookie")]
    return response(b"" if status == 204 else b"page", status, headers)


def test_auth_url() -> None:
    port = free_port()
    external: dict[str, Any] = {
        "auth_url": "http://auth.default.svc.cluster.local/check?a=b",
        "auth_response_headers": "X-User",
    }
    with RecordingOrigin(judge) as auth, RecordingOrigin() as web:
        objects = [
            ingress("plain", **external),
            ingress("page", auth_signin="https://in.test/start", **external),
            *make.service("auth", [("127.0.0.1", auth.port)]),
            *make.service("web", [("127.0.0.1", web.port)]),
        ]
        with (
            Gateway(objects, arguments=arguments(port)),
            Client(("127.0.0.1", port)) as client,
        ):

            def ask(host: str, status: int) -> Any:
                headers = [("Cookie", f"s={status}"), ("X-User", "forged")]
                return client.request("GET", "/a//b?c", host=host, headers=headers)

            answer = ask("plain.test", 204)
            assert (answer.status, answer.value("set-cookie")) == (200, "seen=1")
            assert [ask("plain.test", one).status for one in (401, 403, 302, 404, 503)] == [
                401,
                403,
                500,
                500,
                500,
            ]
            assert ask("plain.test", 401).value("www-authenticate") == "Cookie"
            answer = ask("page.test", 401)
            assert (answer.status, answer.value("set-cookie")) == (302, "seen=1")
            location = "https://in.test/start?rd=http://page.test%2Fa%2F%2Fb%3Fc"
            assert answer.value("location") == location
            auth.turn()
            web.turn()
            asked, (passed,) = auth.take().messages, web.take().messages
    assert passed.values(b"x-user") == [b"ann"]
    assert passed.value(b"x-real-ip") == b"127.0.0.1"
    first = asked[0]
    assert (first.method, first.target) == (b"GET", b"/check?a=b")
    assert first.value(b"host") == b"auth.default.svc.cluster.local"
    assert first.value(b"x-original-url") == b"http://plain.test/a//b?c"
    assert first.value(b"x-sent-from") == b"nginx-ingress-controller"
    assert first.value(b"cookie") == b"s=204"


def test_backend_protocol_https(authority: Authority) -> None:
    """The certificate of the backend is not verified, as in ingress-nginx."""
    port = free_port()
    context = authority.server_context(authority.issue(["else.test"]))
    with ScriptedOrigin(serving(answer_target), tls=context) as origin:
        objects = [
            ingress("secure", backend_protocol="HTTPS"),
            *make.service("web", [("127.0.0.1", origin.port)]),
        ]
        with (
            Gateway(objects, arguments=arguments(port)),
            Client(("127.0.0.1", port)) as client,
        ):
            answer = client.request("GET", "/a", host="secure.test")
            assert (answer.status, answer.body) == (200, b"/a")


def test_satisfy_any() -> None:
    """An address or a password is enough."""
    port = free_port()
    known = "{SHA}" + base64.b64encode(hashlib.sha1(b"secret").digest()).decode()
    users = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "users", "namespace": "default"},
        "stringData": {"auth": f"user:{known}"},
    }
    rules = {"satisfy": "any", "auth_type": "basic", "auth_secret": "users"}
    with RecordingOrigin() as origin:
        objects = [
            users,
            ingress("near", whitelist_source_range="127.0.0.0/8", **rules),
            ingress("far", whitelist_source_range="10.0.0.0/8", **rules),
            *make.service("web", [("127.0.0.1", origin.port)]),
        ]
        with (
            Gateway(objects, arguments=arguments(port)),
            Client(("127.0.0.1", port)) as client,
        ):

            def ask(host: str, password: str) -> int:
                pair = base64.b64encode(f"user:{password}".encode()).decode()
                headers = [("Authorization", f"Basic {pair}")]
                return client.request("GET", "/", host=host, headers=headers).status

            assert [ask("near.test", one) for one in ("secret", "wrong")] == [200, 200]
            assert [ask("far.test", one) for one in ("secret", "wrong")] == [200, 401]


def test_limits() -> None:
    """The sequences of tests/ingress/cases/annotations/limitconnections.yaml, which real nginx answers alike; two workers count together."""
    port = free_port()
    known = "{SHA}" + base64.b64encode(hashlib.sha1(b"secret").digest()).decode()
    users = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "users", "namespace": "default"},
        "stringData": {"auth": f"user:{known}"},
    }
    tight = {"limit_rpm": "1", "limit_burst_multiplier": "1"}
    with RecordingOrigin() as origin:
        objects = [
            users,
            ingress("rate", limit_rpm="1", limit_burst_multiplier="2"),
            ingress("exempt", limit_whitelist="127.0.0.1", **tight),
            ingress("guarded", auth_type="basic", auth_secret="users", **tight),
            *make.service("web", [("127.0.0.1", origin.port)]),
        ]
        with Gateway(objects, workers=2, arguments=arguments(port)):

            def ask(host: str) -> int:
                with Client(("127.0.0.1", port)) as client:  # each by another worker, perhaps
                    return client.request("GET", "/", host=host).status

            assert [ask("rate.test") for _ in range(5)] == [200, 200, 200, 503, 503]
            assert [ask("exempt.test") for _ in range(4)] == [200] * 4
            assert [ask("guarded.test") for _ in range(3)] == [401, 401, 503]


def test_requests_in_progress() -> None:
    """limit-connections: as many requests of an address as that, whichever workers have them."""
    port = free_port()
    begun = b"POST / HTTP/1.1\r\nHost: few.test\r\nContent-Length: 1\r\n\r\n"
    with RecordingOrigin() as origin:
        objects = [
            ingress("few", limit_connections="2"),
            *make.service("web", [("127.0.0.1", origin.port)]),
        ]
        with Gateway(objects, workers=2, arguments=arguments(port)), ExitStack() as clients:
            made = [clients.enter_context(Client(("127.0.0.1", port))) for _ in range(3)]

            def ask() -> int:
                return made[2].request("GET", "/", host="few.test").status

            for client in made[:2]:
                client.expect("POST")
                client.send(begun)
            wait_for(lambda: ask() == 503)
            for client in made[:2]:
                client.send(b"x")
            assert [client.read_response().status for client in made[:2]] == [200, 200]
            wait_for(lambda: ask() == 200)


def test_error_pages() -> None:
    """Pages of default-backend in place of errors of a backend and of the proxy, which no client can forge."""
    port = free_port()

    def serve(message: Message) -> bytes:
        return response(b"page " + (message.value(b"x-code") or b"none"), 404)

    def fail(message: Message) -> bytes:
        return response(b"trace", int(message.target[1:4]))

    with RecordingOrigin(serve) as pages, RecordingOrigin(fail) as web:
        objects = [
            ingress("shop", custom_http_errors="403,500", default_backend="pages"),
            ingress(
                "shut",
                custom_http_errors="403,500",
                default_backend="pages",
                disable_proxy_intercept_errors="true",
                denylist_source_range="127.0.0.0/8",
            ),
            *make.service("pages", [("127.0.0.1", pages.port)]),
            *make.service("web", [("127.0.0.1", web.port)]),
        ]
        with (
            Gateway(objects, arguments=arguments(port)),
            Client(("127.0.0.1", port)) as client,
        ):
            forged = [("X-Code", "1"), ("X-Service-Name", "other"), ("Accept", "text/html")]
            answer = client.request("POST", "/500/a?b=c", host="shop.test", headers=forged)
            assert (answer.status, answer.body) == (404, b"page 500")
            answer = client.request("GET", "/502", host="shop.test")
            assert (answer.status, answer.body) == (502, b"trace")
            answer = client.request("GET", "/500", host="shut.test")
            assert (answer.status, answer.body) == (404, b"page 403")
            pages.turn()
            first = pages.take().messages[0]
    assert (first.method, first.target) == (b"GET", b"/?b=c")
    wanted = {
        b"host": b"shop.test",
        b"x-format": b"text/html",
        b"x-original-uri": b"/500/a?b=c",
        b"x-namespace": b"default",
        b"x-ingress-name": b"shop",
        b"x-service-name": b"web",
        b"x-service-port": b"80",
    }
    assert {name: first.value(name) for name in wanted} == wanted


def test_location_and_cookies_of_the_backend() -> None:
    """proxy-redirect-*, proxy-cookie-* and the attributes of the session's own cookie."""
    port = free_port()
    rules = {
        "proxy_redirect_from": "http://inner.test/",
        "proxy_redirect_to": "/outer/",
        "proxy_cookie_domain": "inner.test shop.test",
        "proxy_cookie_path": "/ /outer/",
        "affinity": "cookie",
        "session_cookie_name": "place",
        "session_cookie_samesite": "Lax",
        "session_cookie_domain": "shop.test",
        "session_cookie_secure": "true",
    }

    def redirect(message: Message) -> bytes:
        cookie = ("Set-Cookie", "a=b; Domain=inner.test; Path=/x; HttpOnly")
        return response(b"", 302, [("Location", "http://inner.test/x?a=b"), cookie])

    with ScriptedOrigin(serving(redirect)) as origin:
        objects = [
            ingress("shop", **rules),
            *make.service("web", [("127.0.0.1", origin.port)]),
        ]
        with (
            Gateway(objects, arguments=arguments(port)),
            Client(("127.0.0.1", port)) as client,
        ):
            answer = client.request("GET", "/", host="shop.test")
    headers = [(name.lower().decode(), value.decode()) for name, value in answer.headers]
    assert ("location", "http://shop.test/outer/x?a=b") in headers
    backend, session = [value for name, value in headers if name == "set-cookie"]
    assert backend == "a=b; Domain=shop.test; Path=/outer/x; HttpOnly"
    assert session.startswith("place=1")
    assert session.split("; ")[1:] == [
        "Path=/",
        "Domain=shop.test",
        "HttpOnly",
        "Secure",
        "SameSite=Lax",
    ]


def test_client_certificates(authority: Authority) -> None:
    """auth-tls-*: one host asks for certificates, others of the port do not; backends learn what was shown."""
    plain, tls = free_port(), free_port()
    annotations = {
        "auth_tls_secret": "default/clients",
        "auth_tls_pass_certificate_to_upstream": "true",
    }
    asks = ingress("asks", **annotations)
    asks["spec"]["tls"] = [{"hosts": ["asks.test"], "secretName": "pair"}]
    free = ingress("free")
    free["spec"]["tls"] = [{"hosts": ["free.test"], "secretName": "pair"}]
    pair = authority.issue(["asks.test", "free.test"])
    good = authority.issue(["client"], client=True)
    other = Authority("else").issue(["client"], client=True)
    forged = [("SSL-Client-Verify", "SUCCESS"), ("ssl-client-subject-dn", "CN=admin")]
    with RecordingOrigin() as web:
        objects = [
            asks,
            free,
            make.tls_secret("pair", pair.certificate, pair.key),
            make.secret("clients", {"ca.crt": authority.pem}),
            *make.service("web", [("127.0.0.1", web.port)]),
        ]
        options = [*arguments(plain), "--ingress-https", str(tls)]
        with Gateway(objects, arguments=options):

            def ask(client_pair: Any, host: str, sni: str = "") -> int:
                context = authority.client_context(client_pair)
                with Client(("127.0.0.1", tls), tls=context, sni=sni or host) as client:
                    return client.request("GET", "/", host=host, headers=forged).status

            assert [ask(one, "asks.test") for one in (good, None, other)] == [200, 400, 400]
            assert ask(None, "free.test") == 200
            assert ask(good, "asks.test", "free.test") == 421
            web.turn()
            first, second = web.take().messages
    assert first.values(b"ssl-client-verify") == [b"SUCCESS"]
    assert first.values(b"ssl-client-subject-dn") == [b"CN=client"]
    assert first.value(b"ssl-client-cert").startswith(b"-----BEGIN%20CERTIFICATE-----%0A")
    assert [name for name, _ in second.headers if name.lower().startswith(b"ssl-client")] == []


def test_passthrough(authority: Authority) -> None:
    """The Service ends TLS of one host; the port serves other hosts as before."""
    plain, tls = free_port(), free_port()
    passed = ingress("passed", ssl_passthrough="true")
    ended = ingress("ended")
    ended["spec"]["tls"] = [{"hosts": ["ended.test"], "secretName": "pair"}]
    ended["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] = "other"
    pair = authority.issue(["ended.test"])
    context = authority.server_context(authority.issue(["passed.test"]))
    with (
        ScriptedOrigin(serving(answer_target), tls=context) as own,
        ScriptedOrigin(serving(answer_target)) as other,
    ):
        objects = [
            passed,
            ended,
            make.tls_secret("pair", pair.certificate, pair.key),
            *make.service("web", [("127.0.0.1", own.port)]),
            *make.service("other", [("127.0.0.1", other.port)]),
        ]
        with Gateway(objects, arguments=[*arguments(plain), "--ingress-https", str(tls)]):
            for host in ("passed.test", "ended.test"):
                trust = authority.client_context()
                with Client(("127.0.0.1", tls), tls=trust, sni=host) as client:
                    answer = client.request("GET", f"/{host}", host=host)
                    assert (answer.status, answer.body) == (200, f"/{host}".encode())


def test_certificates_for_backends(authority: Authority) -> None:
    """proxy-ssl-*: the backend gets a certificate, and its own is verified by name."""
    port = free_port()
    context = authority.server_context(authority.issue(["in.test"]), ask_client=True)
    pair = authority.issue(["edge"], client=True)
    data = {"ca.crt": authority.pem, "tls.crt": pair.certificate, "tls.key": pair.key}
    common = {"backend_protocol": "HTTPS", "proxy_ssl_verify": "on"}
    shown = {**common, "proxy_ssl_secret": "default/both"}
    wrong = ingress("wrong", proxy_ssl_name="else.test", **shown)
    hidden = ingress(
        "hidden", proxy_ssl_secret="default/authority", proxy_ssl_name="in.test", **common
    )
    for one, service in ((wrong, "second"), (hidden, "third")):
        one["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] = service
    with ScriptedOrigin(serving(answer_target), tls=context) as origin:
        objects = [
            ingress("good", proxy_ssl_name="in.test", **shown),
            wrong,
            hidden,
            make.secret("both", data),
            make.secret("authority", {"ca.crt": authority.pem}),
            *(
                item
                for name in ("web", "second", "third")
                for item in make.service(name, [("127.0.0.1", origin.port)])
            ),
        ]
        with (
            Gateway(objects, arguments=arguments(port)),
            Client(("127.0.0.1", port)) as client,
        ):
            answer = client.request("GET", "/a", host="good.test")
            assert (answer.status, answer.body) == (200, b"/a")
            assert client.request("GET", "/a", host="wrong.test").status == 503
            assert client.request("GET", "/a", host="hidden.test").status in (502, 503)
