"""Each switch of the hostile provider: the relying party refuses what is wrong, for the reason that the switch names."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from identity_provider.hostile import HostileProvider
from identity_provider.provider import USER, Client
from identity_provider.relying_party import (
    AFTER_LOGOUT,
    CALLBACK,
    Refused,
    RelyingParty,
    Tokens,
    sign_in,
)
from identity_provider.user_agent import UserAgent
from identity_provider.web_server import Answer
from wire.harness.certificates import Authority

_JSON = {"content-type": "application/json"}


@pytest.fixture
def client(hostile: HostileProvider) -> Client:
    return hostile.register(CALLBACK, AFTER_LOGOUT)


@pytest.fixture
def party(hostile: HostileProvider, client: Client) -> Iterator[RelyingParty]:
    with RelyingParty(hostile.issuer, client, skew=5) as running:
        yield running


def test_without_switches_it_is_a_careful_provider(
    hostile: HostileProvider, agent: UserAgent, party: RelyingParty
) -> None:
    tokens = sign_in(agent, party)
    assert tokens.claims["sub"] == USER
    newer = party.refresh(tokens)
    with pytest.raises(Refused, match="invalid_grant"):
        party.refresh(tokens)
    assert hostile.reused_refresh_tokens == 1
    assert agent.follow(party.logout_url(newer), until=AFTER_LOGOUT).url == AFTER_LOGOUT
    assert (hostile.count("authorize"), hostile.count("token")) == (1, 3)
    assert hostile.last("logout").query["id_token_hint"] == newer.id_token
    assert hostile.count("other") == 0


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"nonce": "of another login"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"aud": "another client"}, "aud"),
        ({"aud": ["another client"]}, "aud"),
        ({"azp": "another client"}, "azp"),
        ({"iss": "https://issuer.test"}, "iss"),
        ({"iss": None}, "iss"),
        ({"exp": 1}, "exp"),
        ({"exp": None}, "exp"),
        ({"iat": 2**40}, "iat"),
        ({"sub": None}, "sub"),
    ],
)
def test_claims(
    hostile: HostileProvider,
    agent: UserAgent,
    party: RelyingParty,
    claims: dict[str, Any],
    reason: str,
) -> None:
    hostile.switches.claims = claims
    with pytest.raises(Refused, match=f"^{reason}$"):
        sign_in(agent, party)


@pytest.mark.parametrize("algorithm", ["none", "HS256", "HS256-public-key"])
def test_algorithms_that_are_no_signature(
    hostile: HostileProvider, agent: UserAgent, party: RelyingParty, algorithm: str
) -> None:
    hostile.switches.algorithm = algorithm
    with pytest.raises(Refused, match="signature"):
        sign_in(agent, party)


def test_keys(hostile: HostileProvider, agent: UserAgent, party: RelyingParty) -> None:
    hostile.switches.algorithm = "ES256"
    sign_in(agent, party)
    hostile.rotate_keys()
    sign_in(agent, party)
    hostile.rotate_keys(keep=False)
    sign_in(agent, party)
    hostile.switches.publish_key = False
    with pytest.raises(Refused, match="signature"):
        sign_in(agent, party)


@pytest.mark.parametrize("size", [0, 5_000, 100_000])
def test_size_of_tokens(
    hostile: HostileProvider, agent: UserAgent, party: RelyingParty, size: int
) -> None:
    hostile.switches.id_token_bytes = size
    hostile.switches.access_token_bytes = size
    hostile.switches.refresh_token_bytes = size
    tokens = sign_in(agent, party)
    for token in (tokens.id_token, tokens.access_token, tokens.refresh_token):
        assert size <= len(token) <= size + 2000


@pytest.mark.parametrize("name", ["access_token", "id_token"])
def test_answer_that_lacks_a_token(
    hostile: HostileProvider, agent: UserAgent, party: RelyingParty, name: str
) -> None:
    hostile.switches.token_fields = {"refresh_token": None}
    assert sign_in(agent, party).refresh_token == ""
    hostile.switches.token_fields = {name: None}
    with pytest.raises(Refused, match=f"no {name}"):
        sign_in(agent, party)


@pytest.mark.parametrize(
    ("callback", "reason"),
    [
        ({"state": "forged"}, "state"),
        ({"state": None}, "state"),
        ({"iss": "https://issuer.test"}, "iss"),
        ({"iss": None}, "no-iss"),
        ({"code": None}, "invalid_grant"),
        ({"code": "forged"}, "invalid_grant"),
        ({"code": None, "error": "access_denied"}, "access_denied"),
    ],
)
def test_parameters_of_the_callback(
    hostile: HostileProvider,
    agent: UserAgent,
    party: RelyingParty,
    callback: dict[str, str | None],
    reason: str,
) -> None:
    hostile.switches.callback = callback
    with pytest.raises(Refused, match=f"^{reason}$"):
        sign_in(agent, party)


def test_metadata_of_another_issuer(hostile: HostileProvider, party: RelyingParty) -> None:
    hostile.switches.metadata = {"issuer": "https://issuer.test"}
    with pytest.raises(Refused, match="issuer-mismatch"):
        party.begin()


def test_redirects_are_not_followed(hostile: HostileProvider, party: RelyingParty) -> None:
    elsewhere = Answer(302, headers={"location": f"{hostile.issuer}/elsewhere"})
    hostile.switches.answers["discovery"] = elsewhere
    with pytest.raises(Refused, match="status"):
        party.begin()
    assert (hostile.count("discovery"), hostile.count("other")) == (1, 0)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(400, b'{"error": "invalid_grant"}', _JSON), "invalid_grant"),
        (Answer(500, b"<h1>error</h1>", {"content-type": "text/html"}), "token"),
        (Answer(200, b"not JSON", _JSON), "token"),
        (Answer(200, b"[]", _JSON), "token"),
        (Answer(302, headers={"location": "/elsewhere"}), "token"),
    ],
)
def test_answers_of_the_token_endpoint(
    hostile: HostileProvider, agent: UserAgent, party: RelyingParty, answer: Answer, reason: str
) -> None:
    hostile.switches.answers["token"] = answer
    with pytest.raises(Refused, match=f"^{reason}$"):
        sign_in(agent, party)
    assert (hostile.count("token"), hostile.count("other")) == (1, 0)


def test_refresh_that_fails_or_keeps_the_token(
    hostile: HostileProvider, agent: UserAgent, party: RelyingParty
) -> None:
    tokens = sign_in(agent, party)
    hostile.switches.refresh = "keep"
    newer = party.refresh(tokens)
    assert newer.refresh_token == tokens.refresh_token
    assert party.refresh(newer).access_token != newer.access_token
    hostile.switches.refresh = "refuse"
    with pytest.raises(Refused, match="invalid_grant"):
        party.refresh(newer)


def test_token_endpoint_that_does_not_answer(
    hostile: HostileProvider, agent: UserAgent, party: RelyingParty
) -> None:
    login = party.begin()
    callback = agent.follow(login.url, until=CALLBACK).url
    hostile.switches.held = {"token"}
    party.set_deadline(0.2)
    with pytest.raises(Refused, match="timeout"):
        party.finish(callback, login)


def test_held_call_is_released(
    hostile: HostileProvider, agent: UserAgent, party: RelyingParty
) -> None:
    login = party.begin()
    callback = agent.follow(login.url, until=CALLBACK).url
    hostile.switches.held = {"token"}
    ended: list[Tokens] = []
    thread = threading.Thread(target=lambda: ended.append(party.finish(callback, login)))
    thread.start()
    hostile.wait_for_calls("token", 1)
    assert ended == []
    hostile.release()
    thread.join(20)
    assert ended[0].claims["sub"] == USER


def test_clocks(hostile: HostileProvider, agent: UserAgent, party: RelyingParty) -> None:
    hostile.switches.clock_offset = 4
    sign_in(agent, party)
    hostile.switches.clock_offset = 60
    with pytest.raises(Refused, match="iat"):
        sign_in(agent, party)


def test_port_that_is_closed_at_first() -> None:
    provider = HostileProvider(listening=False)
    client = provider.register(CALLBACK, AFTER_LOGOUT)
    with RelyingParty(provider.issuer, client) as party, UserAgent() as agent:
        with pytest.raises(Refused, match="unreachable"):
            party.begin()
        provider.start()
        tokens = sign_in(agent, party)
        provider.stop()
        with pytest.raises(Refused, match="token"):
            party.refresh(tokens)


def test_login_form(hostile: HostileProvider, agent: UserAgent, party: RelyingParty) -> None:
    hostile.switches.login_form = True
    agent.user = "bob"
    assert sign_in(agent, party).claims["sub"] == "bob"


def test_endless_answer_ends_with_the_connection(hostile: HostileProvider) -> None:
    hostile.switches.answers["discovery"] = Answer(200, b"{", _JSON, endless=True)
    url = f"{hostile.issuer}/.well-known/openid-configuration"
    with httpx.stream("GET", url) as answer:
        size = 0
        for piece in answer.iter_bytes():
            size += len(piece)
            if size > 2**20:
                break
    assert size > 2**20


def test_https(authority: Authority, agent: UserAgent) -> None:
    context = authority.server_context(authority.issue(["localhost"]))
    provider = HostileProvider(context=context)
    client = provider.register(CALLBACK, AFTER_LOGOUT)
    try:
        with RelyingParty(provider.issuer, client, trust=authority.client_context()) as party:
            assert sign_in(agent, party).claims["sub"] == USER
        other = Authority("another authority").client_context()
        with RelyingParty(provider.issuer, client, trust=other) as party:
            with pytest.raises(Refused, match="unreachable"):
                party.begin()
    finally:
        provider.stop()
