"""Annotations: each name is known, each invalid value has its effect, and nothing that a user writes is unbounded."""

from __future__ import annotations

import pytest

from edgefast.translate.ingress.annotation_fields import Affinity, Annotations, Canary
from edgefast.translate.ingress.annotations import read_annotations
from edgefast.translate.ingress.configmap import Globals, ResponseValues, parse_size
from edgefast.translate.ingress.known import KNOWN, SERVED
from edgefast.translate.ingress.unserved import CLOSING, CRITICAL, DIFFERS, HARMLESS, PARTS
from edgefast.translate.ingress.values import PREFIX

pytestmark = pytest.mark.pure


PLAIN = Globals()


def read(settings: Globals = PLAIN, /, **given: str) -> Annotations:
    return read_annotations(
        {PREFIX + name.replace("_", "-"): value for name, value in given.items()}, settings
    )


def notes(found: Annotations) -> dict[str, tuple[bool, str]]:
    return {one.name: (one.error, one.reason) for one in found.notes}


def test_each_annotation_has_one_meaning() -> None:
    tables = (SERVED, CRITICAL, CLOSING, PARTS, DIFFERS, HARMLESS)
    assert sum(map(len, tables)) == len(KNOWN) == 138


def test_without_annotations_the_settings_of_the_config_map_apply() -> None:
    settings = Globals(ssl_redirect=False, body_size=5, read_timeout=7, tries=2)
    found = read(settings)
    assert (found.ssl_redirect, found.body_size, found.read_timeout) == (False, 5, 7)
    assert (found.tries, found.notes, found.closed, found.refused) == (2, (), (), "")


@pytest.mark.parametrize(
    ("value", "settings", "rate"),
    [
        ("512", Globals(), 512),
        ("0", Globals(), 0),
        ("-4", Globals(), 0),
        ("x", Globals(rate=7), 7),
        ("0", Globals(rate=7), 1 << 30),
        ("9" * 18, Globals(), 1 << 30),
    ],
)
def test_rates(value: str, settings: Globals, rate: int) -> None:
    assert read(settings, limit_rate=value).rate == rate


@pytest.mark.parametrize("value", ["1", "t", "T", "TRUE", "true", "True"])
def test_booleans_are_those_of_go(value: str) -> None:
    assert read(use_regex=value).use_regex
    assert not read(use_regex=f"{value}x").use_regex


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auth_type", "kerberos"),
        ("upstream_vhost", "a b"),
        ("server_alias", "a;b"),
        ("x_forwarded_prefix", "/a b{}"),
        ("from_to_www_redirect", "maybe"),
        ("permanent_redirect", "https://x/$uri"),
        ("temporal_redirect", "https://x/{}"),
        ("configuration_snippet", "return 200;"),
    ],
)
def test_of_some_invalid_values_the_ingress_is_not_served(name: str, value: str) -> None:
    found = read(**{name: value})
    assert found.refused == name.replace("_", "-")
    assert notes(found)[found.refused] == (True, "Invalid")


@pytest.mark.parametrize(
    ("given", "closed"),
    [
        ({"whitelist_source_range": "10.0.0.0/40"}, "whitelist-source-range"),
        ({"allowlist_source_range": "nobody"}, "allowlist-source-range"),
        ({"allowlist_source_range": ""}, "allowlist-source-range"),
        ({"denylist_source_range": "10.0.0.1,x"}, "denylist-source-range"),
        ({"auth_type": "basic"}, "auth-secret"),
        ({"auth_type": "digest", "auth_secret": "a"}, "auth-type"),
        ({"auth_url": "http://a/b", "auth_method": "post"}, "auth-method"),
        ({"auth_tls_secret": "a"}, "auth-tls-secret"),
        ({"enable_modsecurity": "true"}, "enable-modsecurity"),
        ({"backend_protocol": "FCGI"}, "backend-protocol"),
    ],
)
def test_of_what_decides_access_and_is_not_understood_the_locations_are_closed(
    given: dict[str, str], closed: str
) -> None:
    found = read(**given)
    assert found.closed == (closed,) and not found.refused
    assert notes(found)[closed][0]


@pytest.mark.parametrize("text", ["4 04, 500", "400,,12", "404,5 "])
def test_codes_of_errors_that_are_no_statuses(text: str) -> None:
    """They have the syntax that ingress-nginx requires, which ignores them all the same."""
    found = read(custom_http_errors=text)
    assert not found.pages.codes
    assert "custom-http-errors" in notes(found)


def test_the_older_name_of_a_list_counts_where_the_newer_one_is_missing() -> None:
    assert read(whitelist_source_range="10.0.0.1").allow == ("10.0.0.1/32",)
    both = read(whitelist_source_range="10.0.0.1", allowlist_source_range="10.0.0.2, ::1")
    assert both.allow == ("10.0.0.2/32", "::1/128")
    assert read(Globals(allow=("1.1.1.1/32",))).allow == ("1.1.1.1/32",)


def test_snippets_need_the_config_map() -> None:
    allowed = Globals(critical=True, allow_snippets=True)
    assert read(allowed, server_snippet="return 403;").closes_host
    ignored = read(Globals(critical=True), server_snippet="return 403;")
    assert not ignored.closed and not ignored.refused
    assert notes(ignored)["server-snippet"] == (False, "Invalid")


def test_a_canary_needs_its_switch() -> None:
    assert read(canary_weight="5").canary is None
    assert read(canary="true", canary_weight="5", canary_by_header="x-a").canary == Canary(
        weight=5, header="x-a"
    )
    wrong = read(canary="true", canary_weight="x", canary_by_header="a b{}")
    assert wrong.canary == Canary()


def test_affinity_and_its_lifetime() -> None:
    assert read(affinity="cookie").affinity == Affinity(name="INGRESSCOOKIE", max_age=0, path="")
    found = read(affinity="cookie", session_cookie_max_age="-5")
    assert found.affinity is not None and found.affinity.max_age == 0
    endless = read(affinity="cookie", session_cookie_max_age="9" * 5000).affinity
    assert endless is not None and endless.max_age == 0
    assert read(affinity="ip").affinity is None
    both = read(affinity="cookie", session_cookie_max_age="5", session_cookie_expires="9").affinity
    assert both is not None and both.max_age == 5
    older = read(affinity="cookie", session_cookie_expires="9").affinity
    assert older is not None and older.max_age == 9


def test_attributes_of_the_cookie() -> None:
    found = read(
        affinity="cookie",
        session_cookie_domain=".a.test",
        session_cookie_samesite="None",
        session_cookie_conditional_samesite_none="true",
        session_cookie_secure="true",
        session_cookie_change_on_failure="true",
        affinity_canary_behavior="legacy",
    )
    assert found.affinity == Affinity(
        name="INGRESSCOOKIE",
        max_age=0,
        path="",
        domain=".a.test",
        same_site="None",
        conditional=True,
        secure=True,
        change_on_failure=True,
    )
    assert notes(found) == {"affinity-canary-behavior": (False, "NotSupported")}
    wrong = read(affinity="cookie", session_cookie_domain="a/b", session_cookie_samesite="x")
    assert wrong.affinity is not None and wrong.affinity.domain == wrong.affinity.same_site == ""
    assert notes(wrong) == {
        "session-cookie-domain": (True, "NotSupported"),
        "session-cookie-samesite": (False, "Invalid"),
    }


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("$request_uri", ["RequestURI"]),
        ("${request_uri}-text$host", ["RequestURI", "Host"]),
        ("$remote_addr$binary_remote_addr", ["SourceIP"]),
        ("$http_x_user_id$cookie_Session$arg_q", ["Header x-user-id", "Cookie Session", "QueryParam q"]),
        ("$uri$args", ["Path", "Query"]),
        ("text", None),
        ("$", None),
        ("$http_", None),
        ("$server_name$host", None),
        ("".join(f"$arg_{one}" for one in range(17)), None),
    ],
)  # fmt: skip
def test_keys_of_hashes(key: str, parts: list[str] | None) -> None:
    found = read(upstream_hash_by=key, load_balance="round_robin")
    if parts is None:
        assert found.balancer is None
        assert notes(found) == {"upstream-hash-by": (True, "NotSupported")}
        return
    assert found.balancer is not None and found.balancer.consistent_hash is not None
    made = found.balancer.consistent_hash.parts or ()
    assert [f"{one.type} {one.name or ''}".strip() for one in made] == parts
    assert found.notes == ()


def test_algorithms() -> None:
    plain, turns = read(load_balance="ewma"), read(load_balance="round_robin")
    assert plain.balancer is None and list(notes(plain)) == ["load-balance"]
    assert turns.balancer is not None and turns.balancer.type == "RoundRobin"
    assert read(Globals(load_balance="round_robin")).balancer == turns.balancer
    assert read(upstream_hash_by="a b;").refused == "upstream-hash-by"
    subset = read(upstream_hash_by="$host", upstream_hash_by_subset="true")
    assert notes(subset) == {"upstream-hash-by-subset": (False, "NotSupported")}


def test_timeouts_of_connections_and_tries() -> None:
    found = read(proxy_connect_timeout="9", proxy_next_upstream_timeout="7")
    assert (found.connect_timeout, found.retry_timeout, found.notes) == (9, 7, ())
    found = read(Globals(connect_timeout=3, retry_timeout=2), proxy_connect_timeout="0")
    assert (found.connect_timeout, found.retry_timeout) == (3, 2)
    assert notes(found) == {"proxy-connect-timeout": (True, "NotSupported")}


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("8", 8), ("8k", 8192), ("8M", 8 << 20), ("1g", 1 << 30), ("8b", None), ("x", None)],
)
def test_sizes_of_nginx(text: str, size: int | None) -> None:
    assert parse_size(text) == size


def test_redirects_and_their_codes() -> None:
    temporal = read(temporal_redirect="https://a.test/b?c=d", temporal_redirect_code="308")
    assert temporal.redirection is not None and temporal.redirection.code == 302
    permanent = read(permanent_redirect="https://a.test", permanent_redirect_code="308")
    assert permanent.redirection is not None and permanent.redirection.code == 308
    assert read(temporal_redirect="/relative").redirection is None


def test_many_unknown_annotations_are_bounded_and_no_value_is_shown() -> None:
    given = {f"{PREFIX}{'x' * 5_000}{at:03}": "hunter2" for at in range(99)}
    found = read_annotations(given, Globals())
    assert len(found.notes) == 33
    assert found.notes[-1].message.startswith("67 more")
    text = repr(found)
    assert len(text) < 33 * 1_000 and "hunter2" not in text


@pytest.mark.parametrize(
    ("name", "value", "about"),
    [
        ("proxy_cookie_path", "/a", "1 word"),
        ("proxy_cookie_path", "/a /b /c", "3 words"),
        ("proxy_cookie_path", "~ /b", "empty"),
        ("proxy_cookie_path", "/ " + "/x" * 600, "longer"),
        ("proxy_cookie_path", "~?a /b", "not an RE2 expression"),
        ("proxy_cookie_domain", "a.test b:80", "characters"),
    ],
)
def test_a_rewrite_of_cookies_is_served_exactly_or_not_at_all(
    name: str, value: str, about: str
) -> None:
    found = read(**{name: value})
    assert found.responses is None
    (note,) = found.notes
    assert note.error
    assert note.reason == "NotSupported"
    assert about in note.message
    assert note.message.endswith("unchanged")


@pytest.mark.parametrize(
    ("begin", "to", "expected"),
    [
        ("~^http://(a|b)/(.*)$", "https://$host/$1/$2/$3", r"https://{host}/\1/\2/"),
        ("~*^HTTP://", "$scheme://", "{scheme}://"),
        ("http://a/", "${scheme}://b/", "{scheme}://b/"),
        ("http://a/", "$server_name/", None),
        ("http://$host/", "/", None),
        ("~a(?=b)", "/", None),
        ("http://a/", r"/\1", None),
        ("http://a/", "/{x}", None),
    ],
)
def test_variables_of_the_config_map(begin: str, to: str, expected: str | None) -> None:
    """The ConfigMap is not checked by ingress-nginx: variables and expressions with groups come from there."""
    settings = Globals(responses=ResponseValues(redirect_from=begin, redirect_to=to))
    found = read(settings)
    if expected is None:
        assert found.responses is None
        assert [one.name for one in found.notes] == ["proxy-redirect-from"]
        return
    assert found.responses is not None
    (location,) = found.responses.locations
    assert location.to == expected
    assert (location.type == "RegularExpression") == begin.startswith("~")
    assert found.notes == ()


def test_an_annotation_switches_the_rewrites_of_the_config_map_off() -> None:
    settings = Globals(responses=ResponseValues(redirect_from="/", redirect_to="/x/"))
    assert read(settings, proxy_redirect_from="off").responses is None
    assert read(settings, proxy_redirect_to="off").responses is None
