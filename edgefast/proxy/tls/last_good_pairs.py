"""LastGoodPairs: keeps listeners up when certificate and key of a TLS Secret no longer match.

In: each new snapshot of the files.
Out: the same snapshot with the last matching version of every such Secret, and a problem that names
it. By the Gateway API, a listener without a usable certificate is not served. A file that is edited
in two steps (certificate, then key) must not cause that in a running gateway.
Must never: hold back a Secret that is new, removed or not a TLS Secret.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast import ir
from edgefast.api.core.secret import Secret
from edgefast.api.loaded import Loaded
from edgefast.api.snapshot import Key, Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.proxy.tls.server import check_secret
from edgefast.translate.tls.keyring import TLS_TYPE

__all__ = ["LastGoodPairs"]


class LastGoodPairs:
    """Give it every snapshot in turn. Only Secrets that changed are looked into."""

    def __init__(self) -> None:
        self._table: Mapping[Key, Secret] = {}
        self._used: dict[Key, Loaded | Secret] = {}
        self._bad: dict[Key, tuple[Secret, str]] = {}  # what is held back, and why

    def keep(self, snapshot: Snapshot) -> tuple[Snapshot, tuple[Problem, ...]]:
        """Return the snapshot to serve and what is wrong with the one given."""
        if snapshot.secrets is not self._table:
            self._table = snapshot.secrets
            self._look(snapshot)
        kept = [self._used[key] for key in self._bad]
        problems = tuple(_problem(snapshot, secret, error) for secret, error in self._bad.values())
        return (snapshot.replace(kept) if kept else snapshot), problems

    def _look(self, snapshot: Snapshot) -> None:
        used: dict[Key, Loaded | Secret] = {}
        bad: dict[Key, tuple[Secret, str]] = {}
        for key, secret in snapshot.secrets.items():
            before = self._used.get(key)
            error = self._evaluate(key, secret, before) if before is not None else ""
            if error and before is not None:
                used[key], bad[key] = before, (secret, error)
            else:
                used[key] = snapshot.loaded.get(("Secret", *key), secret)
        self._used, self._bad = used, bad

    def _evaluate(self, key: Key, secret: Secret, before: Loaded | Secret) -> str:
        """Return why `before` must stay in use, "" when `secret` may be used."""
        old = before.obj if isinstance(before, Loaded) else before
        if old is secret or secret.type != TLS_TYPE or not isinstance(old, Secret):
            return ""
        known = self._bad.get(key)
        if known is not None and known[0] is secret:
            return known[1]
        error = _mismatch(secret)
        return error if error and not _mismatch(old) else ""


def _mismatch(secret: Secret) -> str:
    from edgefast.translate.tls.certificate import parse_pair

    pair = parse_pair(secret.value("tls.crt") or b"", secret.value("tls.key") or b"")
    if isinstance(pair, str):
        return pair
    # As a worker will load it, which is no good moment to find out that the library will not.
    return check_secret(ir.Secret("", certificate=pair.chain, private_key=pair.key)) or ""


def _problem(snapshot: Snapshot, secret: Secret, error: str) -> Problem:
    ref = ObjectRef("Secret", secret.metadata.namespace, secret.metadata.name)
    return Problem(
        ref,
        "data",
        "Invalid",
        error,
        hint="its last good version stays in use",
        source=snapshot.source_of(ref, "data"),
    )
