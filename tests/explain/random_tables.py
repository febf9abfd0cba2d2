"""Random fleets and requests for the tests that hold an explanation against a real engine."""

from __future__ import annotations

import random
from base64 import b64encode
from hashlib import sha1, sha256
from typing import Any, Literal

import msgspec

from edgefast import ir
from edgefast.explain import RequestSpec
from tests.auth.jwt import issuer
from tests.explain.balancers import BALANCERS, SHUT, random_endpoints
from tests.explain.random_backend_policy import make_treatment
from tests.explain.random_filters import pick_filters, random_filters
from tests.table.reference import precedence

PORTS = (8080, 8081)
HOSTS = ("www.example.com", "api.example.com", "example.com", "a.b.example.com", "other.org")
HOSTNAMES = ("*", "*.example.com", "www.example.com", "api.example.com", "*.b.example.com", "*.com")
SEGMENTS = ("a", "b", "ab", "~x", "%C3%A4", "x.y")
METHODS = ("GET", "POST", "HEAD", "OPTIONS", "DELETE")
NAMES = ("x-a", "x-b", "accept", "x-user")
VALUES = ("1", "2", "1,2", "a b", "ab", "")
PATTERNS = (".*", "[0-9]+", "(a|b).*", "1", "[^,]*")
PATHS = ("/.*", "/a.*", "/(a|b)(/.*)?", "/[a-z]+/b", "/a/b.*", ".*")
PARAMETERS = ("q", "r", "x-a")
MORE = ("", "", *"/ /a/b //a /../a /%61 /a%2Fb ;v=1 /a;/b /a|b /;a /a;/../b%2F".split())
CLUSTERS = ("service/ns/one/80", "service/ns/two/80", "backend/ns/three")
EMPTY = "service/ns/empty/80"
UNITS = (*(f"security/ns/{one}#authorization" for one in "abc"), "traffic/ns/a", "traffic/ns/b")
TOKENS = "security/ns/c#jwt"
KEYS, USERS = "security/ns/a#apiKeyAuth", "security/ns/b#basicAuth"
REPLACED = (
    ir.ResponseOverride(statuses=((418, 418), (401, 403)), status=410, body=b"gone"),
    ir.ResponseOverride(statuses=((503, 503),), status=302, location="//else.test/"),
)
#: Tokens: good ones that say different things, one of nobody's, one that is none. All of them last.
SIGNED = (
    issuer.token("EdDSA", iat=None, exp=10**10).decode(),
    issuer.token("EdDSA", iat=None, exp=10**10, sub="eve", roles=["b"], scope="read").decode(),
    issuer.token("EdDSA", 1, iat=None, exp=10**10).decode(),
    "a.b.c",
)
#: "1:1" and "ab:2", of whom the first is known, and what is none.
BASIC = ("Basic MTox", "basic MTox", "Basic YWI6Mg==", "Basic 1", "Bearer 1")
FORWARDED = (
    "x-real-ip", "x-forwarded-host", "x-forwarded-port", "x-forwarded-scheme", "x-scheme",
    "x-original-forwarded-for", "x-original-forwarded-host", "x-original-uri",
)  # fmt: skip
CLIENT_CERT: tuple[Literal["", "sanitize", "forward", "append", "set", "always"], ...] = (
    "", "sanitize", "forward", "append", "set", "always"
)  # fmt: skip
SUBSTITUTIONS = ("/", "/new", r"/x\0", r"/\1/y", "", "-", r"\2")


class Tables:
    """One random fleet and its requests."""

    def __init__(self, seed: int, backend: int) -> None:
        self._random = random.Random(seed)
        self._versions = random.Random(seed)  # of HTTP: does not move the others
        self._backend = backend

    def fleet(self) -> ir.Fleet:
        """Return a fleet."""
        listeners = self._listeners()
        hosts = [host for one in listeners for host in self._hosts(one)]
        clusters = [
            ir.Cluster(name=name, endpoints=random_endpoints(self._random, self._backend))
            for name in CLUSTERS
        ]
        units = [*map(self._unit, UNITS), self._keys(), self._users(), self._tokens()]
        one_suffices = [one for one in ("security/ns/a#", "security/ns/b#") if self._chance(25)]
        units = [
            msgspec.structs.replace(one, any=one.name.startswith(tuple(one_suffices)))
            for one in units
        ]
        return ir.Fleet(
            name="standalone",
            listeners=tuple(listeners),
            virtual_hosts=tuple(hosts),
            clusters=(*clusters, ir.Cluster(name=EMPTY)),
            policies=(*units, *random_filters(self._random, EMPTY)),
        )

    def asks(self, count: int) -> list[RequestSpec]:
        """Return requests."""
        return [self._ask() for _ in range(count)]

    def _chance(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def _listeners(self) -> list[ir.Listener]:
        places = [(p, h) for p in PORTS for h in HOSTNAMES]
        names = self._random.sample(places, self._random.randint(1, 4))
        http = {port: self._settings() for port in PORTS}
        return [
            ir.Listener(
                name=f"ns/gw/l{at}",
                port=port,
                bind_port=port,
                protocol="HTTP",
                hostname=hostname,
                http=http[port],
                filters=pick_filters(self._random),
            )
            for at, (port, hostname) in enumerate(names)
        ]

    def _settings(self) -> ir.HttpSettings:
        pick = self._random.choice
        return ir.HttpSettings(
            escaped_slashes=pick(["UnescapeAndRedirect", "KeepUnchanged", "Reject"]),
            underscores=pick(["Reject", "Allow", "Drop"]),
            path_parameters=pick(["keep", "keep", "strip", "reject"]),
            raw_characters=pick(["Allow", "Allow", "Reject"]),
            http10=self._versions.random() < 0.5,
            http10_host=self._versions.choice(["", "_", "api.example.com"]),
            via=pick(["", "", "edge"]),
            forwarded=pick([ir.ForwardedHeaders(), self._forwarded()]),
            route_timeout=pick([15_000, 0, 500]),
            body_size=pick([0, 0, 500]),
            client_address=ir.ClientAddress(
                trusted_hops=pick([0, 0, 1, 2]),
                trusted_cidrs=pick([(), (), ("127.0.0.0/8", "10.0.0.0/8"), ("192.0.2.0/24",)]),
            ),
        )

    def _forwarded(self) -> ir.ForwardedHeaders:
        names = self._random.sample(FORWARDED, self._random.randint(0, len(FORWARDED)))
        ids: list[Literal["internal", "preserve", "generate"]] = [
            "internal",
            "preserve",
            "generate",
        ]
        return ir.ForwardedHeaders(
            names=tuple(sorted((*names, *(("ssl-client-verify",) if len(names) % 2 else ())))),
            client_cert=CLIENT_CERT[len(names) % len(CLIENT_CERT)],
            overwrite_for=self._chance(50),
            request_id=self._random.choice(ids),
        )

    def _hosts(self, listener: ir.Listener) -> list[ir.VirtualHost]:
        names = self._random.sample(HOSTNAMES, self._random.randint(0, 4))
        return [self._host(listener.name, name) for name in names]

    def _host(self, listener: str, hostname: str) -> ir.VirtualHost:
        rules, pairs = [], []
        for number in range(self._random.randint(1, 6)):
            rules.append(
                self._rule(f"ns/{hostname.strip('*.').replace('.', '-') or 'any'}-{number}", number)
            )
            pairs += [(self._match(), number) for _ in range(self._random.randint(1, 3))]
        order = sorted(range(len(pairs)), key=lambda age: precedence(pairs[age][0], age))
        entries = tuple(ir.Entry(match=pairs[age][0], rule=pairs[age][1]) for age in order)
        return ir.VirtualHost(
            listener=listener, hostname=hostname, rules=tuple(rules), entries=entries
        )

    def _path(self) -> str:
        count = self._random.randint(0, 3)
        return "".join(f"/{self._random.choice(SEGMENTS)}" for _ in range(count))

    def _match(self) -> ir.Match:
        kind: ir.PathKind = self._random.choice(["exact", "prefix", "prefix", "prefix", "regex"])
        path = self._random.choice(PATHS) if kind == "regex" else self._path()
        return ir.Match(
            kind=kind,
            path=path or "/" if kind == "exact" else path,
            method=self._random.choice(["", "", "", *METHODS[:3]]),
            headers=self._predicates(NAMES) if self._chance(30) else (),
            query=self._predicates(PARAMETERS) if self._chance(20) else (),
        )

    def _predicates(self, names: tuple[str, ...]) -> tuple[ir.ValueMatch, ...]:
        chosen = self._random.sample(names, self._random.randint(1, 2))
        made = []
        for name in chosen:
            regex = self._chance(40)
            value = self._random.choice(PATTERNS if regex else VALUES)
            made.append(ir.ValueMatch(name=name, value=value, regex=regex))
        return tuple(made)

    def _rule(self, route: str, index: int) -> ir.Rule:
        pick = self._random.choice
        if self._chance(8):
            return ir.Rule(route=route, index=index, status=500, reason="broken")
        share = self._share()
        shares = (
            (share, ir.BackendRef(cluster=pick(CLUSTERS), weight=3))
            if share.cluster in CLUSTERS and self._chance(20)
            else (share,)
        )
        return ir.Rule(
            route=route,
            index=index,
            name=pick(["", "", "named"]),
            backends=shares,
            request_headers=self._ops() if self._chance(30) else None,
            rewrite=self._rewrite() if self._chance(20) else None,
            redirect=self._redirect() if self._chance(8) else None,
            cors=ir.Cors(allow_origins=("*",)) if self._chance(10) else None,
            timeouts=ir.Timeouts(request=pick([None, 0, 2000])) if self._chance(30) else None,
            rate_limits=self._limits() if self._chance(15) else (),
            **self._guard(),
        )

    def _share(self) -> ir.BackendRef:
        pick = self._random.choice
        if self._chance(6):
            return ir.BackendRef(status=pick([500, 503]), reason="no such Service")
        return ir.BackendRef(
            cluster=EMPTY if self._chance(6) else pick(CLUSTERS),
            request_headers=self._ops() if self._chance(15) else None,
            rewrite=self._rewrite() if self._chance(10) else None,
            treatment=make_treatment(self._random, UNITS[3:]),
        )

    def _ops(self) -> ir.HeaderOps:
        names = [
            "x-a",
            "x-new",
            "Host",
            "x-request-id",
            "x-forwarded-for",
            "X-Edge-Internal",
            "x-real-ip",
            "X-Forwarded-Host",
            "via",
            "te",
        ]
        pick = self._random.choice
        return ir.HeaderOps(
            set=((pick(names), pick(["s1", "s2"])),) if self._chance(60) else (),
            add=((pick(names), pick(["a1", "a2"])),) if self._chance(50) else (),
            remove=(pick(names).lower(),) if self._chance(40) else (),
        )

    def _rewrite(self) -> ir.Rewrite:
        pick = self._random.choice
        path = ir.PathRewrite(
            kind=pick(["full", "prefix"]), value=pick(["/new", "", "/n/w", "/x/"])
        )
        if self._chance(30):
            path = ir.PathRewrite("regex", pick(SUBSTITUTIONS), pick(PATTERNS + PATHS))
        return ir.Rewrite(
            hostname=pick(["", "inside.test"]), path=path if self._chance(70) else None
        )

    def _redirect(self) -> ir.Redirect:
        pick = self._random.choice
        path = ir.PathRewrite(kind=pick(["full", "prefix"]), value=pick(["/new", "", "/n/w"]))
        status = pick([301, 302, 307, 308])
        return ir.Redirect(
            status=status,
            scheme=pick(["", "http", "https"]),
            hostname=pick(["", "else.test"]),
            port=pick([0, 0, 80, 443, 8443]),
            path=path if self._chance(50) else None,
            relative=status == 307,
        )

    def _unit(self, name: str) -> ir.PolicyUnit:
        if self._chance(8):
            return ir.PolicyUnit(name=name, status=500, reason="broken")
        if name.startswith("traffic"):
            pick = self._random.choice
            traffic = ir.Traffic(
                **pick([{}] * 11 + [{"max_requests": pick([0, 9])}, *SHUT]),
                body_size=pick([None, 0, 1000]),
                request_timeout=pick([None, 0, 700, 3000]),
                override=pick([None] * 3 + [REPLACED]),
                load_balancer=pick([None, *[pick(BALANCERS)] * 4]),
                fault=pick([None] * 5 + [ir.Fault(status=418, abort_share=1_000_000)]),
            )
            return ir.PolicyUnit(name=name, traffic=traffic)
        rules = tuple(self._access() for _ in range(self._random.randint(0, 3)))
        return ir.PolicyUnit(name, authorization=ir.Authorization(rules, self._chance(60)))

    def _keys(self) -> ir.PolicyUnit:
        places = ir.CredentialExtractors(
            headers=(("x-user", ""), ("authorization", "Bearer ")) if self._chance(60) else (),
            cookies=("c",) if self._chance(40) else (),
            params=("q", "r")[: self._random.randint(0, 2)],
        )
        keys = ir.ApiKeyAuth(
            clients=tuple(
                sorted((sha256(one).digest(), f"c{at}") for at, one in enumerate((b"1", b"2")))
            ),
            places=places,
            forward_header=self._random.choice(["", "x-a", "x-client"]),
            sanitize=self._chance(50),
        )
        return ir.PolicyUnit(name=KEYS, api_key=keys)

    def _users(self) -> ir.PolicyUnit:
        kept = "{SHA}" + b64encode(sha1(b"1").digest()).decode()
        forward = self._random.choice(["", "x-b"])
        return ir.PolicyUnit(
            name=USERS, basic=ir.BasicAuth(users=(("1", kept),), forward_header=forward)
        )

    def _tokens(self) -> ir.PolicyUnit:
        pick = self._random.choice
        one = ir.JwtProvider(
            name="p",
            issuer=issuer.ISSUER,
            audiences=pick([(), ("api",), ("other",)]),
            keys=issuer.key_set(issuer.jwk("EdDSA")),
            places=ir.CredentialExtractors(
                headers=(("authorization", "Bearer "),), params=("q",), cookies=("t",)
            ),
            claim_headers=pick([(), (("x-a", "sub"), ("x-roles", "roles"))]),
        )
        lenient = pick([{}, {"optional": True}, {"fail_open": True}])
        return ir.PolicyUnit(name=TOKENS, jwt=ir.Jwt(providers=(one,), **lenient))

    def _was_requested(self) -> ir.AccessToken:
        pick = self._random.choice
        asked = pick(
            [
                (),
                (ir.AccessClaim("sub", ("jane", "joe")),),
                (ir.AccessClaim("roles", ("a", "b"), True),),
            ]
        )
        unit = pick(["", "", TOKENS, "security/ns/none#jwt"])
        return ir.AccessToken(pick(["p", "p", "none"]), pick([(), ("read",)]), asked, unit)

    def _access(self) -> ir.AccessRule:
        pick = self._random.choice
        headers = tuple(
            (name, tuple(self._random.sample(VALUES, 2)))
            for name in (NAMES if self._chance(40) else ())
            if self._chance(40)
        )
        kind: ir.PathKind = pick(["exact", "prefix", "prefix", "regex"])
        path = pick(PATHS) if kind == "regex" else self._path() or ("/" if kind == "exact" else "")
        ranges = ("127.0.0.0/8", "10.0.0.0/8", "192.0.2.0/24", "2001:db8::/32")
        return ir.AccessRule(
            allow=self._chance(60),
            sources=tuple(self._random.sample(ranges, 2)) if self._chance(40) else (),
            headers=headers,
            methods=tuple(self._random.sample(METHODS, 2)) if self._chance(30) else (),
            paths=((kind, path),) if self._chance(40) else (),
            token=self._was_requested() if self._chance(20) else None,
        )

    def _guard(self) -> dict[str, Any]:
        """Return what policies there are for a rule; one of them may not be in the table."""
        names = [*UNITS[:3], "security/ns/none#authorization"]
        chances = {names[-1]: 2, **dict.fromkeys((KEYS, USERS, TOKENS), 50)}
        names += [one for one in (KEYS, USERS, TOKENS) if self._chance(10)]
        traffic = tuple(self._random.sample(UNITS[3:], self._random.randint(0, 2)))
        return {
            "policies": tuple(one for one in names if self._chance(chances.get(one, 20))),
            "traffic": traffic if self._chance(40) else (),
            "ceilings": self._random.randint(0, len(traffic)),
            "direct": ir.DirectResponse(status=self._random.choice([200, 418]), body=b"own")
            if self._chance(6)
            else None,
        }

    def _limits(self) -> tuple[ir.RateLimit, ...]:
        """A limit that is at its end from the beginning, or one that no test comes near."""
        pick = self._random.choice
        return tuple(
            ir.RateLimit(
                name=f"ns/f#{at}",
                counter=f"c{at}",
                requests=pick([0, 1_000_000]),
                unit=3600,
                headers=self._predicates(("x-a", "x-user")) if self._chance(50) else (),
                distinct_headers=("x-user",) if self._chance(30) else (),
                sources=(pick(["127.0.0.0/8", "10.0.0.0/8", "2001:db8::/32"]),)
                if self._chance(40)
                else (),
                distinct_source=self._chance(20),
                shadow=self._chance(20),
            )
            for at in range(self._random.randint(1, 2))
        )

    def _ask(self) -> RequestSpec:
        pick = self._random.choice
        more = pick(MORE)
        path = (self._path() or "/"[more.startswith("/") :]) + more or "/"
        query = "&".join(
            f"{pick(PARAMETERS)}={pick(['1', '2', 'a+b', '%31', '', '{1}|'])}"
            for _ in range(pick([0, 0, 1, 2]))
        )
        method = pick(METHODS + ("GET", "GET"))
        if method == "OPTIONS" and self._chance(10):
            path, query = "*", ""
        port = pick(PORTS)
        host = pick(HOSTS)
        return RequestSpec(
            method=method,
            port=port,
            host=pick([host, host.upper(), f"{host}:{port}", f"{host}.", f"{host}.:{port}"]),
            target=path + (f"?{query}" if query or self._chance(5) else ""),
            headers=tuple(self._header() for _ in range(pick([0, 1, 1, 2, 3]))),
            http10=(http10 := self._versions.random() < 0.2),
            has_host=not http10 or self._versions.random() < 0.7,
        )

    def _header(self) -> tuple[str, str]:
        pick = self._random.choice
        if self._chance(70):
            return pick(NAMES + ("X-A", "X-User", "x.a")), pick(VALUES)
        return pick(
            [
                (pick(["x_y", "x_b"]), "1"),
                ("X-Forwarded-For", pick(["10.0.0.7", "192.0.2.9, 10.0.0.1", "nobody", ""])),
                ("X-Request-Id", pick(["given", "x" * 80])),
                ("X-Forwarded-Proto", pick(["https", "HTTP", "https", "https,http"])),
                (pick(["Forwarded", "X-Real-IP"]), "192.0.2.1"),
                (pick(["X-Forwarded-Host", "X-Original-URL", "X-Rewrite-URL"]), "/a/b"),
                ("X-Edge-Internal", "true"),
                (pick(["X-Scheme", "X-Forwarded-Port", *FORWARDED]), "7"),
                ("Connection", "x-b"),
                ("TE", "trailers"),
                ("Origin", "https://a.test"),
                ("Access-Control-Request-Method", "PUT"),
                ("Via", "1.0 someone"),
                ("Content-Length", "0"),
                *(("Authorization", one) for one in BASIC),
                *(("Authorization", f"Bearer {one}") for one in SIGNED),
                ("Cookie", pick(["c=1; d=2", "d=2;c=3", "d=1", 'c="2"', "c=1; c=2"])),
            ]
        )
