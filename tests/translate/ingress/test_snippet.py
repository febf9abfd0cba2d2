"""Lines of snippets: which are served, and what each other one does."""

from __future__ import annotations

import pytest

from edgefast.api.gateway.httproute import HTTPHeaderMatch, HTTPRouteMatch
from edgefast.api.model.regex import compile_regex
from edgefast.translate.ingress.snippet import SnippetAnswer, read_server_snippet, read_snippet
from edgefast.translate.ingress.snippet_conditions import UnsupportedMatch, narrow


def test_header_edits() -> None:
    found = read_snippet(
        """
        # a comment; with { marks
        more_set_headers "X-Frame-Options: DENY";
        more_set_headers 'X-Empty:';
        more_clear_headers X-Powered-By;
        add_header X-A "b c" always;
        add_header X-S d;
        proxy_set_header X-Tenant shop;
        proxy_buffering off;
        """
    )
    assert not found.refused
    assert found.sets == (("x-frame-options", "DENY"),)
    assert (found.adds, found.removes) == ((("x-a", "b c"),), ("x-empty", "x-powered-by"))
    assert found.successes == (("x-s", "d"),)
    assert found.requests == (("x-tenant", "shop"),)


@pytest.mark.parametrize(
    ("text", "allow", "deny"),
    [
        ("allow 10.0.0.0/8; allow 192.168.1.1; deny all;", ("10.0.0.0/8", "192.168.1.1/32"), ()),
        ("deny all;", (), ("0.0.0.0/0", "::/0")),
        ("deny 10.1.0.0/16;", (), ("10.1.0.0/16",)),
        ("deny 10.1.0.0/16; allow all;", (), ("10.1.0.0/16",)),
    ],
)
def test_lists_of_addresses(text: str, allow: tuple[str, ...], deny: tuple[str, ...]) -> None:
    found = read_snippet(text)
    assert (found.allow, found.deny, found.refused) == (allow, deny, ())


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("return 403;", SnippetAnswer(code=403)),
        (
            "return 301 https://else.test/a?b=c;",
            SnippetAnswer(code=301, url="https://else.test/a?b=c"),
        ),
        (
            "return 308 https://$host$request_uri;",
            SnippetAnswer(code=308, template="https://{host}{target}"),
        ),
        ("return 204;", SnippetAnswer(code=204)),
    ],
)
def test_answers(text: str, answer: SnippetAnswer) -> None:
    found = read_snippet(text)
    assert (found.answer, found.refused) == (answer, ())


def test_branches() -> None:
    found = read_snippet(
        """
        if ($host = "www.a.test") { return 301 https://a.test$request_uri; }
        if ( $request_method !~ ^(GET|HEAD)$ ) {
            return 405;
        }
        more_set_headers "X-A: b";
        return 410;
        """
    )
    assert not found.refused and found.answer == SnippetAnswer(code=410)
    assert [(one.condition.negative, one.answer.code) for one in found.branches] == [
        (False, 301),
        (True, 405),
    ]
    assert found.branches[1].condition.methods == ("GET", "HEAD")


@pytest.mark.parametrize(
    ("condition", "taken", "others"),
    [
        ("$host = a.test", ("a.test", "A.TEST:80", "a.test."), ("b.a.test", "a.test.b", "xa.test")),
        (r"$host ~ ^www\.", ("www.a", "WWW.a.test:80"), ("www.", "a.www.b", "wwwx.a")),
        (r"$host ~* A\.test$", ("a.test", "b-a.test:1", "a.test."), ("a.test.b", "axtest")),
        ("$http_x_a = b", ("b",), ("B", "b c", "ab")),
        ("$http_x_a != b", ("b",), ("c",)),
        ('$http_x_a ~* "(curl|bot.x)"', ("a Curl/1", "bot\udcffX"), ("cur", "bot")),
        ("$http_x_a ~ ^a$", ("a",), ("A", "ba")),
        ('$http_x_a != ""', ("a", "\udcff"), ("",)),
        ('$http_x_a = ""', ("a",), ("",)),
    ],
)
def test_a_condition_matches(
    condition: str, taken: tuple[str, ...], others: tuple[str, ...]
) -> None:
    found = read_snippet(f"if ({condition}) {{ return 403; }}").branches[0].condition
    (header,) = found.headers
    assert header.name == ("host" if "host" in condition else "x-a")
    assert found.negative == ("!= b" in condition or '= ""' in condition.replace("!=", ""))

    def matches(value: str) -> bool:
        raw = value.encode("utf-8", "surrogateescape")
        if header.type == "Exact":
            return raw == header.value.encode()
        return compile_regex(header.value).fullmatch(raw) is not None

    assert [one for one in taken if not matches(one)] == []
    assert [one for one in others if matches(one)] == []


@pytest.mark.parametrize(
    "condition",
    [
        "$host",
        "$http_x_a",
        "$host != a.test b",
        r"$host ~ ^(.+)\.test$",
        "$host !~ a",
        "$host = A.test",
        "$host = $http_x",
        "$remote_addr = 1.2.3.4",
        "$http_host = a.test",
        '$http_cookie ~ "a=b"',
        "$http_x_a !~ b",
        "$http_x_a ~ [^a]",
        r"$http_x_a ~ \S",
        "$http_x_a ~ (?=a)",
        "$http_x_a ~ a++",
        "$http_x_a ~ (a",
        "$http_x_a ~ ^$",
        '$http_x_a ~* "^$|b"',
        r"$http_x_a ~ ^(\d*)$",
        "$http_x_a ~ .*",
        "$request_method ~ POST",
        "$request_method = PURGE",
        "$request_method ~ ^(GET$",
        "$scheme = ftp",
        "$scheme ~ https",
        "-f $request_filename",
    ],
)
def test_a_condition_that_is_not_served_closes(condition: str) -> None:
    found = read_snippet(f"log_not_found off;\nif ({condition}) {{ return 403; }}")
    assert [(one.line, one.directive, one.closes) for one in found.refused] == [(2, "if", True)]


def test_two_conditions_of_one_header() -> None:
    def matches(text: str) -> HTTPRouteMatch:
        return read_snippet(f"if ({text}) {{ return 403; }}").branches[0].condition.matches[0]

    label = HTTPHeaderMatch(type="RegularExpression", name="host", value=r"(?i)[a-z]+\.test")
    wild = HTTPRouteMatch(headers=(label,))
    assert narrow(wild, matches("$host = a.test")) == matches("$host = a.test")
    assert narrow(wild, matches("$host = a.b.test")) is None
    fixed = matches("$http_x_a = b")
    assert narrow(fixed, matches("$http_x_a ~ b|c")) == fixed
    assert narrow(fixed, matches("$http_x_a = c")) is None
    assert narrow(matches('$http_x_a != ""'), fixed) == fixed
    assert narrow(matches("$request_method = GET"), matches("$request_method = HEAD")) is None
    with pytest.raises(UnsupportedMatch, match="x-a"):
        narrow(matches("$http_x_a ~ b"), matches("$http_x_a ~ c"))


@pytest.mark.parametrize(
    "text",
    [
        "deny all; allow 10.0.0.1;",
        "allow 10.0.0.1; deny 10.0.0.0/8;",
        "allow 10.0.0.1;",
        "deny unix:;",
        "deny 10.0.0.0/99;",
        "allow $remote_addr; deny all;",
        "auth_request /check;",
        "auth_basic off;",
        "satisfy any;",
        "internal;",
        "access_by_lua_block { ngx.exit(403) }",
        'if ($host = "a.test") { return 403; deny all; }',
        'if ($host = "a.test") { set $x 1; }',
        'if ($host = "a.test") { if ($host = b) { return 403; } }',
        'return 403; if ($host = "a.test") { return 404; }',
        "if ($scheme = http) { return 403; }" * 9,
        "if ($request_method !~ ^(GET|HEAD|PUT)$) { return 403; }" * 2,
        "return 301 https://$server_name/a;",
        "return 301 https://a.test/$1;",
        "return 302 /relative;",
        'return 200 "text";',
        "return 444;",
        "return 403; return 404;",
        "proxy_set_header X-User $remote_user;",
        "proxy_set_header Host else.test;",
        "proxy_set_header Authorization secret;",
        "proxy_set_header X-A b; proxy_set_header X-A c;",
        'proxy_set_header X-A "b\nc";',
        "unknown_directive on;",
        "include /etc/nginx/other.conf;",
        "rewrite ^/a /b break;",
        "deny all",
        "}",
        "; deny all;",
        'add_header A "b',
        "set $x a\\;b;",
        "deny ${x};",
        "more_set_headers 'A: b' x { }",
        "log_not_found off; deny 1.1.1.1 2.2.2.2;",
        "x " * 9000,
        "log_not_found off;" * 129,
    ],
)
def test_a_line_that_can_decide_access_closes(text: str) -> None:
    assert read_snippet(text).closes


@pytest.mark.parametrize(
    "text",
    [
        "add_header X-A $host always;",
        "more_set_headers 'X-A: $host';",
        "more_set_headers -s 404 'X-A: b';",
        "more_set_headers 'Strict-Transport-Security: max-age=1';",
        "more_clear_headers 'X-*';",
        "add_header X-A b always; more_set_headers 'X-A: c';",
        "expires 1h;",
        "gzip on;",
    ],
)
def test_a_line_that_cannot_is_left_out(text: str) -> None:
    found = read_snippet(text)
    assert found.refused and not found.closes and not found.sets


def test_a_refused_line_has_its_number_and_no_value() -> None:
    found = read_snippet(
        "more_set_headers 'A: b';\n\n  auth_basic_user_file\n /secret;\nexpires 1h;"
    )
    assert [(one.line, one.directive, one.closes) for one in found.refused] == [
        (3, "auth_basic_user_file", True),
        (5, "expires", False),
    ]
    assert "secret" not in str(found.refused)


def test_a_name_that_is_no_word_is_not_shown() -> None:
    assert read_snippet("Se-cret value;").refused[0].directive == ""


def test_server_snippets() -> None:
    assert read_server_snippet("# nothing\naccess_log off;\n") == ()
    assert [
        one.line for one in read_server_snippet("access_log off;\nmore_set_headers 'A: b';")
    ] == [2]
    assert read_server_snippet("location /x { return 200; }")
