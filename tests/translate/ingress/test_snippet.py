"""Lines of snippets: which are served, and what each other one does."""

from __future__ import annotations

import pytest

from edgefast.translate.ingress.snippet import read_server_snippet, read_snippet


def test_header_edits() -> None:
    found = read_snippet(
        """
        # a comment; with { marks
        more_set_headers "X-Frame-Options: DENY";
        more_set_headers 'X-Empty:';
        more_clear_headers X-Powered-By;
        add_header X-A "b c" always;
        proxy_set_header X-Tenant shop;
        proxy_buffering off;
        """
    )
    assert not found.refused
    assert found.sets == (("x-frame-options", "DENY"),)
    assert (found.adds, found.removes) == ((("x-a", "b c"),), ("x-empty", "x-powered-by"))
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
    ("text", "code", "url"),
    [
        ("return 403;", 403, ""),
        ("return 301 https://else.test/a?b=c;", 301, "https://else.test/a?b=c"),
        ("return 204;", 204, ""),
    ],
)
def test_answers(text: str, code: int, url: str) -> None:
    found = read_snippet(text)
    assert (found.code, found.url, found.refused) == (code, url, ())


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
        'if ($host = "a.test") { return 403; }',
        "return 301 https://$host/a;",
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
        "add_header X-A b;",
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
