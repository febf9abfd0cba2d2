"""Locations: expressions of nginx and the same in RE2, and the order of one host."""

from __future__ import annotations

import re

import pytest

from edgefast.api.model.regex import compile_regex
from edgefast.translate.ingress.locations import escape, explain_path, path_pattern
from tests.translate.ingress.answers import answer, translate_documents

pytestmark = pytest.mark.pure

PATHS = ("/", "/foo", "/foo/", "/foo.bar", "/a|/b", "/(a|b)/c", "/x$", "/[0-9]+", "/a(/|$)(.*)")
REQUESTS = ("/", "/foo", "/FOO/x", "/fooxbar", "/a", "/z/b", "/b/c", "/x", "/xy", "/42", "/a/q")


@pytest.mark.parametrize("path", PATHS)
def test_a_pattern_takes_what_nginx_finds(path: str) -> None:
    wanted = re.compile(f"^{path}", re.IGNORECASE | re.DOTALL)
    made = compile_regex(path_pattern(path))
    for request in REQUESTS:
        assert bool(made.fullmatch(request)) == bool(wanted.search(request)), request


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/(?=a)", "lookahead"),
        ("/(?<!a)b", "negative lookbehind"),
        (r"/(a)\1", "backreference"),
        ("/a*+", "possessive"),
        ("/(?>a)", "atomic"),
        ("/(", "not an RE2 expression"),
        ("/" + "a" * 1024, "longer"),
    ],
)
def test_what_is_not_re2_has_a_name(path: str, said: str) -> None:
    assert said in explain_path(path, path_pattern(path))


def test_paths_are_compared_in_the_normal_form_of_requests() -> None:
    assert escape("/a b/%/\u00e4:(x)") == "/a%20b/%25/%C3%A4:(x)"


def test_a_closed_path_with_a_slash_does_not_redirect() -> None:
    text = """apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: open}
spec:
  ingressClassName: nginx
  rules:
  - host: a.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shut, annotations: {nginx.ingress.kubernetes.io/enable-modsecurity: "true"}}
spec:
  ingressClassName: nginx
  rules:
  - host: a.test
    http: {paths: [{path: /dir/, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
"""
    found, _ = translate_documents(text)
    assert answer(found, "GET http://a.test/dir")["gets"] == "service/default/web/80 /dir"
    assert answer(found, "GET http://a.test/dir/")["gets"] == "503 (direct)"
