"""The order of one request: from its first byte to the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ingress.message import Answer, Backend, Request, answer_backend, first
from ingress.naive import (
    access,
    canary,
    certificates,
    cors,
    errorpages,
    redirects,
    responses,
    rewriting,
    snippets,
)
from ingress.naive.client import Client, client_of, name_of_host
from ingress.naive.forwarding import backend_headers, body_limit
from ingress.naive.hosts import Host, Hosts, Upstream
from ingress.naive.matching import BadTarget, Served, is_open, match, normalise
from ingress.naive.objects import Object, Objects

_NO_HOST = "_"


@dataclass(frozen=True)
class _Case:
    """One request with all that was found out about it."""

    request: Request
    client: Client
    host: Host
    path: str
    served: Served


class Evaluator:
    """The expected answers for a set of objects. Requests count against limits in the order of `answer` calls, at one moment."""

    def __init__(self, items: Iterable[Object]) -> None:
        self.objects = Objects(items)
        self.hosts = Hosts(self.objects)
        self.certificates = certificates.certificate_table(self.hosts)
        self.canaries = canary.canaries_of(self.hosts)
        self._counted: dict[tuple[str, str], int] = {}

    def answer(self, request: Request) -> Answer:
        """Order of one request: from-to-www; app-root; location; 413 by Content-Length; 301 for a missing slash; 503 of a closed
        location; answers of a snippet; temporal or permanent redirect; rewrite with a scheme; ssl-redirect; 503 without endpoints; access; 413 of a
        chunked body; canary; backend.

        A request without Host has `$host`: the server name of the default server."""
        if not request.host:
            request = replace(request, host=_NO_HOST)
        answer = self._answer(request)
        if extra := cors.global_headers(self.objects):
            answer = replace(answer, response=tuple(sorted((*answer.response, *extra))))
        if request.scheme != "https":
            return answer
        return replace(
            answer, certificate=certificates.chosen_certificate(self.certificates, request.sni)
        )

    def _answer(self, request: Request) -> Answer:
        name = name_of_host(request.host)
        try:
            path = normalise(request.target)
        except BadTarget:
            return Answer(400, step="target")
        if cors.is_blocked(request, self.objects):
            return Answer(403, step="blocked")
        www = self.hosts.redirecting_names()
        if name in www:
            location = redirects.www_location(request, www[name], self.objects)
            return Answer(redirects.redirect_code(self.objects), location, step="from-to-www")
        host = self.hosts.find(name)
        if location := redirects.app_root(request, host, path):
            return Answer(302, location, step="app-root")
        found = match(host, path)
        client = client_of(request, self.objects)
        case = _Case(request, client, host, path, found.served)
        if not request.chunked and request.body > self._body_limit(found.served):
            return self._error(case, 413, "body")
        if found.slash:
            location = redirects.slash_location(request, found.served, self.objects)
            return self._in_location(case, Answer(301, location, step="slash"))
        if not is_open(found.served.location):
            return self._in_location(case, Answer(503, step="closed"))
        if cors.is_preflight(found.served.location, request):
            return self._in_location(case, Answer(204, step="preflight"))
        redirect = self._redirect(case)
        return redirect if redirect is not None else self._serve(case)

    def _redirect(self, case: _Case) -> Answer | None:
        """Answers of snippets come first. Temporal and permanent redirects beat ssl-redirect and need no access."""
        answered = snippets.snippet_answer(case.served.location, case.request, self.objects)
        if answered is not None and answered[0] < 400:
            return self._in_location(case, Answer(*answered, step="snippet"))
        if answered is not None:
            return self._error(case, answered[0], "snippet")
        fixed = redirects.fixed_redirect(case.request, case.served, self.objects)
        if fixed is not None:
            return self._in_location(case, Answer(*fixed, step="redirect"))
        location = rewriting.redirected(case.served, case.path, case.request.target)
        if location is not None:
            return self._in_location(case, Answer(302, location, step="rewrite"))
        secured = bool(
            certificates.find_certificate(self.certificates, name_of_host(case.request.host))
        )
        location = redirects.ssl_location(
            case.request, case.client, case.served, self.objects, secured=secured
        )
        if location:
            code = redirects.redirect_code(self.objects)
            return self._in_location(case, Answer(code, location, step="ssl-redirect"))
        return None

    def _serve(self, case: _Case) -> Answer:
        location = case.served.location
        page = errorpages.page_of(location, self.objects)
        replaced = (
            location.upstream is not None and not self._is_up(location.upstream) and page.service
        )
        if location.upstream is not None and not self._is_up(location.upstream) and not replaced:
            return self._error(case, 503, "no endpoints")
        if not self._is_within_limits(case):
            return self._error(case, 503, "limit")
        decision = access.decide(case.request, case.client, case.served, self.objects)
        if decision.status:
            return self._refuse(case, decision)
        if case.request.chunked and case.request.body > self._body_limit(case.served):
            return replace(self._error(case, 413, "chunked body"), auth=decision.call)
        return self._forward(case, decision, page if replaced else None)

    def _refuse(self, case: _Case, decision: access.Decision) -> Answer:
        external = access.external_of(case.served.location, self.objects)
        access_word = {401: "unauthorized", 403: "forbidden"}.get(decision.status, "error")
        if decision.status == 401 and (answer := self._signin(case, decision)) is not None:
            return answer
        answer = self._error(case, decision.status, "access")
        if decision.kept and answer.step != "access":
            # nginx keeps the code of the earlier check, and refuses the request for the page with it.
            answer = Answer(decision.kept, step="page")
        response = [*answer.response, *_challenges(decision)]
        if external and external.always_set_cookie and decision.answer and answer.step == "access":
            response.append(("set-cookie", first(decision.answer, "set-cookie")))
        return replace(
            answer, auth=decision.call, access=access_word, response=tuple(sorted(response))
        )

    def _signin(self, case: _Case, decision: access.Decision) -> Answer | None:
        """Set-Cookie of the service is added to the sign-in redirect; the challenges stay on it."""
        external = access.external_of(case.served.location, self.objects)
        if not access.needs_login(case.served, self.objects):
            return None
        if external is None or not external.signin:
            return None
        cookie = first(decision.answer, "set-cookie")
        response = [*([("set-cookie", cookie)] if cookie else []), *_challenges(decision)]
        return Answer(
            302,
            access.signin_location(external, case.request, case.client),
            response=tuple(sorted(response)),
            auth=decision.call,
            access="unauthorized",
            step="sign-in",
        )

    def _forward(
        self, case: _Case, decision: access.Decision, page: errorpages.Page | None
    ) -> Answer:
        location = case.served.location
        request = case.request
        path = rewriting.rewritten(case.served, case.path)
        status = answer_backend(request.headers)
        backend: Backend | None
        if page is not None:
            backend = Backend(page.namespace, page.service, page.port)
        elif location.upstream is None:
            backend, status = None, 404
        else:
            backend = self._choose(location.upstream, request)
        codes = errorpages.codes_of(location)
        if location.flag("disable-proxy-intercept-errors"):
            codes = frozenset()
        if status in codes or (status == 401 and codes):
            if status == 401 and (answer := self._signin(case, decision)) is not None:
                return answer
            if status in codes:
                return replace(
                    self._error(case, status, "backend"),
                    auth=decision.call,
                    access="allowed",
                )
        target, cookies = "", ()
        if backend is not None:
            target, cookies = responses.rewritten_headers(location, request, self.objects)
        answer = Answer(
            status,
            target,
            backend=backend,
            response=cookies,
            auth=decision.call,
            access="allowed",
            step="backend" if backend else "default backend",
        )
        if backend is not None:
            answer = replace(
                answer,
                target=rewriting.forwarded_target(request.target, path),
                sent=backend_headers(
                    request, case.client, self.objects, self._changes(case, decision, page)
                ),
            )
        external = access.external_of(location, self.objects)
        cookie = first(decision.answer, "set-cookie")
        always = external is not None and external.always_set_cookie
        if cookie and (status in access.WITH_COOKIE or always):
            answer = replace(answer, response=(*cookies, ("set-cookie", cookie)))
        answer = replace(answer, response=tuple(sorted(answer.response)))
        return self._in_location(case, answer)

    def _changes(
        self, case: _Case, decision: access.Decision, page: errorpages.Page | None
    ) -> dict[str, str]:
        """Changes of the location to the request: upstream-vhost changes Host only; `Authorization` does not reach the backend
        behind basic auth; auth-response-headers are copied and the client's own are removed, also when the call was not made;
        default-backend for a Service without endpoints gets X-Code 503."""
        location, changed = case.served.location, dict[str, str]()
        if vhost := location.text("upstream-vhost"):
            changed["host"] = vhost
        if access.needs_login(case.served, self.objects):
            if location.text("auth-type"):
                changed["authorization"] = ""
            external = access.external_of(location, self.objects)
            for name in external.response_headers if external else ():
                changed[name.lower()] = first(decision.answer, name)
        prefix = location.text("x-forwarded-prefix")
        if prefix and location.rewrites(case.served.path):
            changed["x-forwarded-prefix"] = rewriting.with_groups(case.served, case.path, prefix)
        if page is not None:
            changed["x-code"] = "503"
            changed["x-format"] = case.request.value("accept")
            changed |= errorpages.describe(case.served, case.host.name)
        return changed

    def _choose(self, primary: Upstream, request: Request) -> Backend:
        """A canary without endpoints is passed over."""
        chosen = self.canaries.get(primary)
        policy = self.hosts.policies.get(chosen) if chosen else None
        if chosen and policy and self._is_up(chosen) and canary.takes(policy, request):
            return self._backend(chosen, is_canary=True)
        return self._backend(primary, is_canary=False)

    def _backend(self, upstream: Upstream, *, is_canary: bool) -> Backend:
        space, service, port = upstream
        found = self.objects.service_port(f"{space}/{service}", port)
        return Backend(space, service, found["port"] if found else 0, is_canary)

    def _is_up(self, upstream: Upstream) -> bool:
        return self.objects.has_endpoints(f"{upstream[0]}/{upstream[1]}", upstream[2])

    def _body_limit(self, served: Served) -> int:
        """proxy-body-size of the location, else of the ConfigMap, else 1 MiB; a closed location has nginx' own 1 MiB."""
        if not is_open(served.location):
            return body_limit("1m")
        default = self.objects.setting("proxy-body-size", "1m")
        return body_limit(served.location.text("proxy-body-size") or default)

    def _is_within_limits(self, case: _Case) -> bool:
        """limit-rps and limit-rpm with burst x5 and 503, per client address and Ingress; limit-whitelist exempts."""
        owner = case.served.location.owner
        if owner is None:
            return True
        exempt = owner.networks("limit-allowlist") or owner.networks("limit-whitelist")
        if access.contains(exempt, case.client.address):
            return True
        for name in ("limit-rps", "limit-rpm"):
            if (limit := owner.number(name)) <= 0:
                continue
            key = f"{name} {owner.ingress['metadata']['name']}", case.client.address
            burst = limit * owner.number("limit-burst-multiplier", 5)
            if self._counted.get(key, 0) > burst:
                return False
            self._counted[key] = self._counted.get(key, 0) + 1
        return True

    def _error(self, case: _Case, code: int, step: str) -> Answer:
        """An own error, or the page for it. Error pages have no HSTS and no cookie; block-cidrs apply to them again."""
        location = case.served.location
        if code not in errorpages.codes_of(location):
            return self._in_location(case, Answer(code, step=step))
        if access.is_blocked(case.client, self.objects):
            return Answer(403, step="blocked page")
        page = errorpages.page_of(location, self.objects)
        if not page.service:
            return Answer(404, step="default page")
        target, cookies = responses.headers_of(case.request)
        return Answer(
            answer_backend(case.request.headers),
            target,
            response=tuple(sorted(cookies)),
            backend=Backend(page.namespace, page.service, page.port),
            target=errorpages.page_target(case.request.target),
            sent=errorpages.page_headers(
                case.request, case.client, case.served, case.host.name, code
            ),
            step="page",
        )

    def _in_location(self, case: _Case, answer: Answer) -> Answer:
        """HSTS (`max-age=31536000; includeSubDomains`) on every answer over TLS that a location gives, with the default certificate
        too."""
        location = case.served.location
        if is_open(location):
            added = cors.cors_headers(location, case.request)
            added += cors.custom_headers(location, self.objects)
            answer = replace(answer, response=tuple(sorted((*answer.response, *added))))
        if case.request.scheme != "https" or self.objects.setting("hsts", "true") != "true":
            return answer
        value = "max-age=" + self.objects.setting("hsts-max-age", "31536000")
        if self.objects.setting("hsts-include-subdomains", "true") == "true":
            value += "; includeSubDomains"
        if self.objects.setting("hsts-preload", "false") == "true":
            value += "; preload"
        found = (*answer.response, ("strict-transport-security", value))
        return replace(answer, response=tuple(sorted(found)))


def _challenges(decision: access.Decision) -> list[tuple[str, str]]:
    """WWW-Authenticate of each check that asked for credentials."""
    return [("www-authenticate", one) for one in decision.challenges]
