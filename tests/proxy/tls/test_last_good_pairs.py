"""GoodPairs: a Secret that stops fitting keeps its last good version; nothing else is held back."""

from __future__ import annotations

import pytest

from edgefast.api.core.secret import Secret
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.snapshot import Snapshot
from edgefast.proxy.tls.last_good_pairs import LastGoodPairs
from proxy.pki import Authority, Pair

pytestmark = pytest.mark.pure

CA = Authority()
FIRST, SECOND = CA.issue("a.test"), CA.issue("a.test")
MIXED = Pair(FIRST.certificate, SECOND.key)


def secret(pair: Pair, name: str = "cert", type: str = "kubernetes.io/tls") -> Secret:
    return Secret(
        metadata=ObjectMeta(name=name, namespace="default"),
        type=type,
        data={"tls.crt": pair.certificate, "tls.key": pair.key},
    )


def test_a_pair_that_stops_fitting_is_held_back_until_it_fits() -> None:
    pairs = LastGoodPairs()
    good = secret(FIRST)
    start = Snapshot.of([good])
    assert pairs.keep(start) == (start, ())
    broken = start.replace([secret(MIXED)])
    for _ in range(3):
        kept, (problem,) = pairs.keep(broken)
        assert kept.secrets["default", "cert"] is good
        assert "tls.key does not belong to tls.crt, its last good version" in problem.text()
        assert "BEGIN" not in problem.text()
    mended = broken.replace([fresh := secret(SECOND)])
    kept, problems = pairs.keep(mended)
    assert (kept.secrets["default", "cert"], problems) == (fresh, ())


def test_another_broken_version_is_held_back_too() -> None:
    pairs = LastGoodPairs()
    good = secret(FIRST)
    snapshot = Snapshot.of([good])
    pairs.keep(snapshot)
    for pair in (MIXED, Pair(b"x", b"y"), Pair(SECOND.certificate, FIRST.key)):
        snapshot = snapshot.replace([secret(pair)])
        assert pairs.keep(snapshot)[0].secrets["default", "cert"] is good


def test_new_removed_and_other_secrets_are_not_held_back() -> None:
    pairs = LastGoodPairs()
    pairs.keep(Snapshot.of([secret(FIRST), secret(FIRST, "other", type="Opaque")]))
    snapshot = Snapshot.of([secret(MIXED, "new"), secret(MIXED, "other", type="Opaque")])
    kept, problems = pairs.keep(snapshot)
    assert kept is snapshot
    assert problems == ()


def test_one_that_never_fitted_is_not_kept() -> None:
    pairs = LastGoodPairs()
    pairs.keep(Snapshot.of([secret(MIXED)]))
    snapshot = Snapshot.of([secret(Pair(SECOND.certificate, FIRST.key))])
    assert pairs.keep(snapshot) == (snapshot, ())
