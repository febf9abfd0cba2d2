"""What error replies and failures of setting up mean: what is sent again, and no secret in any reason."""

from __future__ import annotations

import ssl

import pytest
from redis import exceptions

from edgefast.rate_limit.error_reply import Refusal, Refused, read_refusal
from edgefast.rate_limit.failure import explain_failure

pytestmark = pytest.mark.pure

_SCRIPT = "c0ffee, on @user_script:56."


@pytest.mark.parametrize(
    ("text", "kind", "then"),
    [
        ("NOSCRIPT No matching script. Please use EVAL.", "noscript", "load"),
        # Redis 7 and Valkey give the code of the command that failed in the script, Redis 6 wraps it.
        (f"READONLY You can't write against a read only replica. script: {_SCRIPT}", "readonly", "reconnect"),
        (
            "ERR Error running script (call to f_c0ffee): @user_script:56: @user_script: 56: -READONLY You can't"
            " write against a read only replica.",
            "readonly",
            "reconnect",
        ),
        (
            "ERR Error running script (call to f_c0ffee): @user_script:56: @user_script: 56: -OOM command not"
            " allowed when used memory > 'maxmemory'. ",
            "oom",
            "fail",
        ),
        ("OOM command not allowed when used memory > 'maxmemory'.", "oom", "fail"),
        ("LOADING Redis is loading the dataset in memory", "loading", "reconnect"),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "masterdown", "reconnect"),
        ("CLUSTERDOWN Hash slot not served", "clusterdown", "reconnect"),
        ("NOAUTH Authentication required.", "noauth", "reconnect"),
        ("TRYAGAIN Multiple keys request during rehashing of slot", "tryagain", "split"),
        ("CROSSSLOT Keys in request don't hash to the same slot", "crossslot", "fail"),
        ("NOPERM this user has no permissions to run the 'evalsha' command", "noperm", "fail"),
        ("BUSY Redis is busy running a script.", "busy", "fail"),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", "error", "fail"),
        ("ERR something unheard of", "error", "fail"),
        ("", "error", "fail"),
    ],
)  # fmt: skip
def test_replies(text: str, kind: str, then: str) -> None:
    refusal = read_refusal(text)
    assert (refusal.kind, refusal.then) == (kind, then)
    assert refusal.reason


@pytest.mark.parametrize("code", ["MOVED", "ASK"])
def test_where_the_slot_is(code: str) -> None:
    refusal = read_refusal(f"{code} 3999 127.0.0.1:6381")
    assert (refusal.then, refusal.address) == (code.lower(), "127.0.0.1:6381")
    assert read_refusal(f"{code} 3999 :6381").address == ":6381"


def test_texts_of_the_server_are_cut_and_printable() -> None:
    reason = read_refusal("ERR \x1b[31m" + "x" * 1000).reason
    assert len(reason) < 200 and reason.isprintable()


def test_words_that_look_like_codes_are_none_of_ours() -> None:
    assert read_refusal("ERR the key NOTHING was READ").kind == "error"


def _caused(outer: Exception, cause: BaseException) -> Exception:
    outer.__cause__ = cause
    return outer


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (TimeoutError(), Refusal("timeout", "it does not answer in time")),
        (
            _caused(exceptions.ConnectionError("Error 111"), ConnectionRefusedError(111, "hunter2")),
            Refusal("connect", "Connection refused"),
        ),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] hunter2"), Refusal("tls", "TLS: the handshake failed")),
        (Refused(Refusal("x", "y")), Refusal("x", "y")),
        (exceptions.ConnectionError("hunter2"), Refusal("connect", "it closed the connection during setup")),
        (exceptions.ResponseError("unknown command `AUTH`, with args: `hunter2`"), Refusal("error", "it refuses AUTH or SELECT")),
        (ValueError("hunter2"), Refusal("error", "unexpected ValueError")),
    ],
)  # fmt: skip
def test_failures(error: Exception, refusal: Refusal) -> None:
    assert explain_failure(error) == refusal


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.AuthenticationError("Authentication required."), "noauth"),
        (exceptions.AuthenticationError("invalid username-password pair: hunter2"), "wrongpass"),
        (exceptions.BusyLoadingError("Redis is loading the dataset in memory"), "loading"),
    ],
)
def test_failures_with_a_code(error: Exception, kind: str) -> None:
    found = explain_failure(error)
    assert found.kind == kind
    assert "hunter2" not in found.reason
