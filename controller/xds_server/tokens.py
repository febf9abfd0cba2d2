"""Tokens: the API server's reviews of ServiceAccount tokens, cached for at most a minute.

In: the token of a call, and `review`, which sends a TokenReview with edgefast's audience.
Out: `Subject`: ServiceAccount, pod and the token's expiry; else Refused. Invalid tokens are refused
without a review: no JWT, another audience, expired. The cache key is the digest of the token.
Source: spec section 5 (Gateway Namespace mode), gateway-api B2.
Must never: keep, log or show a token, or send reviews without a limit.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from controller.xds_server.limits import (
    REVIEW_DEADLINE,
    REVIEW_REFUSED_SECONDS,
    REVIEW_SECONDS,
    REVIEWS,
    REVIEWS_AT_ONCE,
    TOKEN_LIMIT,
)
from controller.xds_server.refusal import Cause, Refused, Status

__all__ = ["Review", "Subject", "Tokens", "audience_of"]

log = logging.getLogger("edgefast.controller.push")

_GROUP = "system:serviceaccounts"
_USER = "system:serviceaccount"
_POD_NAME = "authentication.kubernetes.io/pod-name"


def audience_of(name: str, namespace: str, domain: str) -> str:
    """Return the audience of the tokens for a controller: its Service's name, written out."""
    return f"{name}.{namespace}.svc.{domain}"


class Review(Protocol):
    """The answer of the API server (`status` of a TokenReview); `controller.kube.client.TokenReview` is one."""

    @property
    def authenticated(self) -> bool:
        """The token is one of this cluster, in force, and meant for one of `audiences`."""

    @property
    def username(self) -> str:
        """`system:serviceaccount:NAMESPACE:NAME`."""

    @property
    def groups(self) -> Sequence[str]:
        """Groups of the user."""

    @property
    def extra(self) -> Mapping[str, Sequence[str]]:
        """The pod that the token is bound to, among others."""

    @property
    def audiences(self) -> Sequence[str]:
        """Those of the question that the token is meant for."""


class Subject(msgspec.Struct, frozen=True):
    """Whose token it is. `expires`: Unix time."""

    namespace: str
    account: str
    pod: str
    expires: float


class _Claims(msgspec.Struct):
    exp: float
    aud: list[str] | str


class _ReviewResult(msgspec.Struct, frozen=True):
    cause: Cause
    message: str


class _Known(msgspec.Struct, frozen=True):
    until: float  # Unix time; after this the API server is asked again
    judged: Subject | _ReviewResult


class Tokens:
    """Reviews ServiceAccount tokens at the API server and caches the result for a minute."""

    def __init__(
        self,
        review: Callable[[str, Sequence[str]], Awaitable[Review]],
        audience: str,
        clock: Callable[[], float],
        *,
        seconds: float = REVIEW_SECONDS,
    ) -> None:
        """`review(token, audiences)` asks the API server and may raise anything; `clock`: Unix time."""
        self.asked = 0  # reviews that were asked for
        self._review = review
        self._audience = audience
        self._clock = clock
        self._seconds = seconds
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._asking: dict[bytes, asyncio.Lock] = {}
        self._turns = asyncio.Semaphore(REVIEWS_AT_ONCE)
        self._failed: type[Exception] | None = None  # what the last review ended with

    async def subject(self, token: str) -> Subject:
        """Return whose token this is; raises Refused. Cause `review_failed` alone says nothing about the token."""
        expires = self._look(token)
        digest = hashlib.sha256(token.encode()).digest()
        known = self._recall(digest)
        if known is None:
            # Many streams may come with one token: it is asked about once.
            lock = self._asking.setdefault(digest, asyncio.Lock())
            try:
                async with lock:
                    known = self._recall(digest) or await self._ask(token, digest, expires)
            finally:
                if not lock.locked() and self._asking.get(digest) is lock:
                    del self._asking[digest]
        if isinstance(known.judged, _ReviewResult):
            raise _refuse(known.judged.cause, known.judged.message)
        return known.judged

    def forget(self) -> None:
        """Ask again about every token that comes."""
        self._known.clear()

    def _look(self, token: str) -> float:
        """Return the token's end after refusing what needs no question. Nothing in it is believed but this."""
        if not token or len(token) > TOKEN_LIMIT:
            raise _refuse("token", "not a token")
        try:
            _, payload, _ = token.split(".")
            padded = payload + "=" * (-len(payload) % 4)
            claims = msgspec.json.decode(
                base64.b64decode(padded.encode("ascii"), b"-_", validate=True), type=_Claims
            )
        except (ValueError, binascii.Error, msgspec.MsgspecError, RecursionError):
            raise _refuse("token", "not a token") from None
        audiences = [claims.aud] if isinstance(claims.aud, str) else claims.aud
        if self._audience not in audiences:
            raise _refuse("audience", f"the token is not for audience {self._audience}")
        if claims.exp <= self._clock():
            raise _refuse("expired", "the token has expired")
        return claims.exp

    def _recall(self, digest: bytes) -> _Known | None:
        known = self._known.get(digest)
        if known is not None and self._clock() >= known.until:
            del self._known[digest]
            known = None
        return known

    async def _ask(self, token: str, digest: bytes, expires: float) -> _Known:
        try:
            async with asyncio.timeout(REVIEW_DEADLINE), self._turns:
                self.asked += 1
                review = await self._review(token, (self._audience,))
        except Exception as error:
            # The text of an error may hold what was asked: its type is enough, and once, whoever knocks how often.
            if type(error) is not self._failed:
                self._failed = type(error)
                log.error("tokens cannot be reviewed: %s", type(error).__name__)
            raise Refused(
                "review_failed", "UNAVAILABLE", "the API server cannot review tokens now"
            ) from None
        self._failed = None
        now = self._clock()
        evaluated = self._evaluate(review, expires)
        if isinstance(evaluated, Subject):
            known = _Known(min(now + self._seconds, expires), evaluated)
        else:
            known = _Known(now + min(self._seconds, REVIEW_REFUSED_SECONDS), evaluated)
        self._known[digest] = known
        while len(self._known) > REVIEWS:
            self._known.popitem(last=False)
        return known

    def _evaluate(self, review: Review, expires: float) -> Subject | _ReviewResult:
        if not review.authenticated:
            return _ReviewResult("token", "the API server does not accept the token")
        if self._audience not in review.audiences:
            return _ReviewResult("audience", f"the token is not for audience {self._audience}")
        prefix, _, rest = review.username.partition(":")
        kind, _, account = rest.partition(":")
        namespace, _, name = account.partition(":")
        if f"{prefix}:{kind}" != _USER or not namespace or not name or _GROUP not in review.groups:
            return _ReviewResult("service_account", "the token is not one of a ServiceAccount")
        pods = review.extra.get(_POD_NAME, ())
        if len(pods) != 1 or not pods[0]:
            return _ReviewResult("service_account", "the token is not bound to a pod")
        return Subject(namespace, name, pods[0], expires)


def _refuse(cause: Cause, message: str) -> Refused:
    status: Status = "PERMISSION_DENIED" if cause == "service_account" else "UNAUTHENTICATED"
    return Refused(cause, status, message)
