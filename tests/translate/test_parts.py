"""The small rules on their own: hostnames, paths, regexes, precedence, references, certificates."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edgefast
from edgefast import ir
from edgefast.api.config.edgegateway import BackendAddresses, EdgeGateway
from edgefast.api.edge.edgeproxy import MAX_HEADERS, EdgeProxy, EdgeProxySpec
from edgefast.api.model.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from edgefast.api.model.regex import check_regex, compile_regex
from edgefast.api.model.units import parse_timestamp
from edgefast.netaddr import ANY_NETWORK
from edgefast.translate.conditions.condition import MESSAGE_LIMIT, cut_message
from edgefast.translate.edgeproxy.edgeproxy import MAX_HEAD, check_edge_proxy
from edgefast.translate.gateway.address import is_bound
from edgefast.translate.match.hostname import intersects, matching_hostnames
from edgefast.translate.match.literal import literal_prefix
from edgefast.translate.match.path import MAX_SEGMENTS, check_path, normalize_path, strip_slash
from edgefast.translate.match.precedence import age_order, match_order
from edgefast.translate.route.rule import MAX_RETRIES
from edgefast.translate.settings import Settings, settings_from
from edgefast.translate.tls.certificate import Pair, check_bundle, parse_pair
from proxy.pki import Authority

pytestmark = pytest.mark.pure

_NAMES = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4).map(".".join)
_PATTERNS = st.one_of(_NAMES, _NAMES.map(lambda name: f"*.{name}"), st.just("*"))


def _matches(pattern: str, host: str) -> bool:
    """Say what Listener.hostname says, label by label."""
    if pattern == "*":
        return True
    wanted, labels = pattern.split("."), host.split(".")
    if wanted[0] != "*":
        return wanted == labels
    return len(labels) >= len(wanted) and labels[len(labels) - len(wanted) + 1 :] == wanted[1:]


@given(_PATTERNS, _PATTERNS)
def test_patterns_intersect_exactly_when_a_host_matches_both(one: str, other: str) -> None:
    hosts = [
        ".".join(labels)
        for size in range(1, 6)
        for labels in _words(size)
        if _matches(one, ".".join(labels)) and _matches(other, ".".join(labels))
    ]
    assert intersects(one, other) == bool(hosts)
    assert intersects(other, one) == intersects(one, other)


def _words(size: int) -> list[tuple[str, ...]]:
    if size == 0:
        return [()]
    return [(letter, *rest) for rest in _words(size - 1) for letter in "ab"]


def test_hostnames_come_once_and_in_order() -> None:
    assert matching_hostnames("*", ("b", "a", "b")) == ("b", "a")
    assert matching_hostnames("*.example.com", ()) == ("*",)
    assert matching_hostnames("a.example.com", ("example.com",)) == ()


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "/a b",
        "/a?b",
        "/a#b",
        "/%",
        "/%zz",
        "/a//b",
        "/./a",
        "/a/..",
        "/%2e",
        "/%2F",
        "/a%5c",
        "/é",
        "/\r\n",
    ],
)
def test_paths_that_no_request_has(path: str) -> None:
    assert check_path(path)


@pytest.mark.parametrize(
    "path", ["/", "/a/", "/a/b;c=1,d", "/%20", "/~user/@x", "/...", "/.well-known"]
)
def test_paths_that_requests_have(path: str) -> None:
    assert not check_path(path)


@given(st.text("abc%2fF7eE/.~-", max_size=12))
def test_normal_form_is_stable(path: str) -> None:
    assert normalize_path(normalize_path(path)) == normalize_path(path) or "%25" in path
    assert not strip_slash("/")


def test_regex_is_re2() -> None:
    assert not check_regex(r"/v[0-9]+/.*")
    assert check_regex(r"(a)\1") and check_regex("(?=a)") and check_regex("[")


def test_order_of_matches() -> None:
    header = ir.ValueMatch(name="h", value="v")
    ordered = [
        ir.Match(kind="exact", path="/aa"),
        ir.Match(kind="exact", path="/a"),
        ir.Match(kind="regex", path="/.*"),
        ir.Match(kind="prefix", path="/aa"),
        ir.Match(kind="prefix", path="/a", method="GET"),
        ir.Match(kind="prefix", path="/a", headers=(header,), query=(header,)),
        ir.Match(kind="prefix", path="/a", headers=(header,)),
        ir.Match(kind="prefix", path="/a", query=(header,)),
        ir.Match(kind="prefix", path="/a"),
        ir.Match(kind="prefix", path=""),
    ]
    backwards = list(reversed(ordered))
    assert sorted(backwards, key=match_order) == ordered


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"x",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"A" * 2_000_000,
    ],
)
def test_broken_certificates_are_said_and_never_raise(text: bytes) -> None:
    assert check_bundle(text)
    assert isinstance(parse_pair(text, text), str)


CA = Authority()
_ONE, _TWO = (CA.issue(name).certificate for name in ("a.test", "b.test"))
_KEY = CA.issue("a.test").key


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text.replace(b"-----END CERT", b"----END CERT"), "not a whole BEGIN or END"),
        (lambda text: text.replace(b"-----BEGIN CERT", b"BEGIN CERT"), "not a whole BEGIN or END"),
        (lambda text: text.replace(b"BEGIN", b"BEGLN"), "ends a block without a BEGIN line"),
        (lambda text: text.partition(b"-----END")[0], "ends before its END line"),
        (lambda text: text[:80] + b"!" + text[81:], "certificate 2 cannot be read"),
        (lambda text: text[:90] + text[160:], "certificate 2 cannot be read"),
        (lambda text: text.replace(b"CERTIFICATE", b"TRUSTED CERTIFICATE"), "is not supported"),
    ],
)
def test_a_broken_second_certificate_is_named(damage: Callable[[bytes], bytes], said: str) -> None:
    """In a chain and in a bundle: libraries skip a block with damaged BEGIN or END lines."""
    pair = CA.issue("c.test")
    assert not check_bundle(
        _ONE + _TWO + _KEY
    )  # complete blocks that are not certificates are skipped
    broken = damage(_TWO)
    assert broken != _TWO
    for last in (b"", _ONE):
        found = check_bundle(_ONE + broken + last)
        assert said in found or (last and "before the previous one ends" in found)
        assert "certificate 2" in found
        refused = parse_pair(pair.certificate + broken + last, pair.key)
        assert isinstance(refused, str)
        assert "certificate 2" in refused


@pytest.mark.parametrize(
    ("hostname", "names", "fits"),
    [
        ("*.example.com", ("www.example.com", "api.example.com"), True),
        (
            "*.example.com",
            ("a.b.example.com",),
            True,
        ),  # a wildcard of the Gateway API takes more than one label
        ("*.example.com", ("*.b.example.com",), True),
        ("*.example.com", ("*.example.com",), True),
        ("*.example.com", ("example.com", "www.example.org"), False),
        ("*.example.com", ("wwwexample.com",), False),
        ("*.example.com", (), False),
        ("www.example.com", ("*.example.com",), True),
        ("www.example.com", ("api.example.com",), False),
        ("www.example.com", ("a.www.example.com",), False),
        ("", (), True),
    ],
)
def test_a_certificate_is_for_the_hostname_of_the_listener(
    hostname: str, names: tuple[str, ...], fits: bool
) -> None:
    pair = Pair("RSA", 0, 1, "", "", b"", b"", names)
    assert bool(pair.check_name(hostname)) is not fits


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ({"proxyProtocol": "required"}, "every connection is closed"),
        ({"proxyProtocol": "optional"}, "with a PROXY protocol header are closed"),
        ({"proxyProtocol": "optional", "trustedCIDRs": ("0.0.0.0/0",)}, "trusts every peer"),
        ({"proxyProtocol": "required", "proxyProtocolCIDRs": ("::/0",)}, "trusts every peer"),
        ({"proxyProtocol": "required", "trustedCIDRs": ("10.0.0.0/8",)}, ""),
        ({"proxyProtocol": "off", "trustedCIDRs": ("0.0.0.0/0",)}, ""),
    ],
)
def test_who_may_send_a_proxy_protocol_header_is_checked(
    client: dict[str, object], said: str
) -> None:
    proxy = msgspec.convert(
        {"metadata": {"name": "p", "namespace": "n"}, "spec": {"clientAddress": client}}, EdgeProxy
    )
    problems = check_edge_proxy(proxy, of_gateway=True, standalone=False).problems
    assert [said in one.text() for one in problems] == ([True] if said else [])
    closed = said == "every connection is closed"
    assert {one.severity for one in problems} <= ({"error"} if closed else {"warning"})
    senders = {"proxyProtocolCIDRs": ("10.0.0.0/8",)}
    below = msgspec.convert({"clientAddress": senders}, EdgeProxySpec)
    merged = check_edge_proxy(proxy, of_gateway=True, standalone=False, class_spec=below)
    assert bool(merged.problems) is ("::/0" in client.get("proxyProtocolCIDRs", ()))  # type: ignore[operator]


def test_addresses_of_backends_are_free_in_files_and_not_in_a_cluster() -> None:
    given = EdgeGateway(backends=BackendAddresses(allowed_cidrs=("127.0.0.0/8",)))
    for standalone, config, cidrs, unix in (
        (True, None, ANY_NETWORK, True),
        (False, None, (), False),
        (True, given, ("127.0.0.0/8",), False),
        (False, given, ("127.0.0.0/8",), False),
    ):
        settings = settings_from(config, standalone=standalone)
        assert (settings.backend_cidrs, settings.unix_backends) == (cidrs, unix)


def test_messages_are_cut_at_the_limit_of_the_api() -> None:
    assert cut_message("x" * MESSAGE_LIMIT) == "x" * MESSAGE_LIMIT
    cut = cut_message("x" * (MESSAGE_LIMIT + 1))
    assert len(cut) == MESSAGE_LIMIT and cut.endswith("(cut)")


def test_settings_of_an_empty_configuration() -> None:
    assert settings_from() == Settings()
    cluster = settings_from(standalone=False)
    assert not cluster.standalone and not cluster.enable_backend


def test_limits_are_those_of_the_table() -> None:
    lib = pytest.importorskip("edgefast._csrc").lib
    assert MAX_SEGMENTS == lib.EF_MAX_SEGMENTS - 1
    assert MAX_HEAD == lib.EF_MAX_HEAD
    assert MAX_HEADERS == lib.EF_MAX_HEADERS


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("/admin/(?!public).*", "/admin/"),
        ("^/admin$", "/admin"),
        (r"/a\.b\/c\d+", "/a.b/c"),
        ("/ab?c", "/a"),
        ("/ab*", "/a"),
        ("/ab+(?=c)", "/ab"),
        ("/ab{2}", "/a"),
        ("/a[bc]", "/a"),
        ("/a(", "/a"),
        ("/a\\", "/a"),
        ("(?i)/a", ""),
        ("/a|/b", ""),
        ("/a(?=x|y)", "/a"),
        ("/a[|](?=x)", "/a"),
        (r"/a\|b(?=x)", "/a|b"),
        ("/a(x|/b", ""),
        ("/a)|/b", ""),
        ("/a[x|/b", ""),
        ("", ""),
    ],
)
def test_literal_beginning_of_a_pattern(pattern: str, literal: str) -> None:
    assert literal_prefix(pattern) == literal


@given(
    st.lists(
        st.one_of(
            st.sampled_from(list("ab/|^$.*+?(){}[]1\\")),
            st.sampled_from(["(?:a|b)", "[^/]+", r"\."]),
        ),
        max_size=8,
    ).map("".join),
    st.text("ab/1.|", max_size=6),
)
def test_no_value_of_a_pattern_begins_otherwise(pattern: str, value: str) -> None:
    if not check_regex(pattern) and compile_regex(pattern).fullmatch(value):
        assert value.startswith(literal_prefix(pattern))


def test_ages_are_times_not_texts() -> None:
    def age(text: str) -> int:
        return age_order(ObjectMeta(name="a", namespace="b", creation_timestamp=text))[0]

    same = ["2024-01-01T00:00:00Z", "2024-01-01t02:30:00.000+02:30", "2023-12-31T19:00:00-05:00"]
    assert len({age(text) for text in same}) == 1
    ordered = ["1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "2024-02-28T23:59:59.999999999Z"]
    ordered += ["2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z", "2100-02-28T00:00:00Z", "banana"]
    assert sorted(ordered, key=age) == ordered
    assert age("") == age("banana") == age("2024-13-01T00:00:00Z")


@given(st.datetimes(timezones=st.just(UTC)))
def test_timestamps_are_counted_as_calendars_do(moment: datetime) -> None:
    counted = parse_timestamp(moment.isoformat())
    assert counted is not None
    assert (
        counted == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    )


def test_ceiling_of_retries_is_that_of_the_data_plane() -> None:
    consts = Path(edgefast.__file__).parent / "core" / "consts.pxi"
    found = re.search(r"^ *RETRY_MAX_ATTEMPTS = ([0-9]+)", consts.read_text(), re.MULTILINE)
    assert found and int(found[1]) == MAX_RETRIES


def test_what_is_bound() -> None:
    anywhere, here = Settings(), Settings(addresses=("192.0.2.1", "2001:db8::1"))
    for text in ("127.0.0.1", "::1", "0.0.0.0", "::"):
        assert is_bound(text, anywhere) and not is_bound(text, here)
        assert is_bound(text, Settings(addresses=("0.0.0.0",))) is (":" not in text)
    for text in ("192.0.2.1", "2001:DB8:0::1"):
        assert is_bound(text, here) and is_bound(text, anywhere)
    assert not is_bound("www.example.com", anywhere) and not is_bound("", here)


def test_unknown_operators_of_selectors_select_nothing() -> None:
    newer = LabelSelectorRequirement(key="a", operator="Gt", values=("1",))  # type: ignore[arg-type]
    assert not LabelSelector(match_expressions=(newer,)).matches({"a": "2"})
    assert not LabelSelector(match_expressions=(newer,)).matches({})
