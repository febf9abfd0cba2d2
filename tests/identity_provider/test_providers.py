"""Real providers with a relying party that others wrote: the code flow with PKCE, refresh, logout and what they refuse."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from identity_provider.provider import USER, Client, IdentityProvider
from identity_provider.relying_party import (
    AFTER_LOGOUT,
    CALLBACK,
    Login,
    Refused,
    RelyingParty,
    sign_in,
)
from identity_provider.user_agent import UserAgent


@pytest.fixture(scope="module")
def client(provider: IdentityProvider) -> Client:
    return provider.register(CALLBACK, AFTER_LOGOUT)


@pytest.fixture
def party(provider: IdentityProvider, client: Client) -> Iterator[RelyingParty]:
    with RelyingParty(provider.issuer, client, skew=5) as running:
        yield running


def test_login_refresh_and_logout(agent: UserAgent, party: RelyingParty) -> None:
    tokens = sign_in(agent, party)
    # Keycloak's subject is a number of its own.
    assert USER in (tokens.claims["sub"], tokens.claims.get("preferred_username"))
    assert tokens.claims["email"] == f"{USER}@example.com"
    newer = party.refresh(tokens)
    assert newer.claims["sub"] == tokens.claims["sub"]
    assert newer.access_token != tokens.access_token
    page = agent.follow(party.logout_url(newer), until=AFTER_LOGOUT)
    assert page.url.startswith(AFTER_LOGOUT)


def test_second_login_needs_no_form_until_the_logout(agent: UserAgent, party: RelyingParty) -> None:
    assert agent.follow(party.begin().url, until=CALLBACK).forms == 1
    # Keycloak ends its session with the exchange of a code for an offline token: one exchange, at the end.
    login = party.begin()
    second = agent.follow(login.url, until=CALLBACK)
    assert second.forms == 0
    agent.follow(party.logout_url(party.finish(second.url, login)), until=AFTER_LOGOUT)
    assert agent.follow(party.begin().url, until=CALLBACK).forms == 1


def test_code_is_used_once(agent: UserAgent, party: RelyingParty) -> None:
    login = party.begin()
    callback = agent.follow(login.url, until=CALLBACK).url
    party.finish(callback, login)
    with pytest.raises(Refused, match="invalid_grant"):
        party.finish(callback, login)


def test_other_verifier_is_refused(agent: UserAgent, party: RelyingParty) -> None:
    login = party.begin()
    callback = agent.follow(login.url, until=CALLBACK).url
    other: Login = dataclasses.replace(login, verifier=party.begin().verifier)
    with pytest.raises(Refused, match="invalid_grant"):
        party.finish(callback, other)


def test_other_redirect_uri_is_refused(
    agent: UserAgent, provider: IdentityProvider, client: Client
) -> None:
    elsewhere = dataclasses.replace(client, redirect_uri="http://elsewhere.test/callback")
    with RelyingParty(provider.issuer, elsewhere) as party:
        page = agent.follow(party.begin().url)
    assert page.url.startswith(provider.issuer)
    assert page.status == 400 or "error" in page.url


def test_wrong_secret_is_refused(
    agent: UserAgent, provider: IdentityProvider, client: Client
) -> None:
    impostor = dataclasses.replace(client, secret="a secret of another client")
    with RelyingParty(provider.issuer, impostor) as party:
        login = party.begin()
        callback = agent.follow(login.url, until=CALLBACK).url
        with pytest.raises(Refused, match="invalid_client|unauthorized_client"):
            party.finish(callback, login)
