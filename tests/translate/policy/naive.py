"""A naive evaluator of policies: walks the levels of one place and asks of each unit whether it holds, written apart from the product."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

BACKENDS = ("Service", "Backend")
LOWER = ("HTTPRoute", "GRPCRoute", *BACKENDS)

FAMILIES = {
    "SecurityPolicy": "security",
    "BackendTrafficPolicy": "traffic",
    "XBackendTrafficPolicy": "xtraffic",
}
#: Kind, name, section; all are in one namespace.
At = tuple[str, str, str]


@dataclass(frozen=True)
class Plain:
    """A policy."""

    kind: str
    name: str
    created: str
    merge: str
    targets: tuple[At, ...]
    features: tuple[str, ...]

    @cached_property
    def title(self) -> str:
        return f"{FAMILIES[self.kind]}/default/{self.name}"

    @cached_property
    def aims(self) -> tuple[At, ...]:
        if self.kind == "BackendTrafficPolicy":
            return self.targets
        if self.kind == "XBackendTrafficPolicy":  # which has no parts of targets
            return tuple((kind, name, "") for kind, name, _ in self.targets if kind in BACKENDS)
        return tuple(one for one in self.targets if one[0] not in BACKENDS)

    @cached_property
    def units(self) -> tuple[str, ...]:
        if self.kind == "XBackendTrafficPolicy":
            return (self.title,) if self.features else ()
        lower = [kind in LOWER for kind, _, _ in self.aims]
        if (self.merge == "Replace" and not all(lower)) or (
            self.merge == "Override" and any(lower)
        ):
            return (f"{self.title}#closed",)
        if "traffic" in self.features and any(kind in BACKENDS for kind, _, _ in self.targets):
            return (f"{self.title}#closed",)  # it says what is settled before there is a backend
        if self.kind == "BackendTrafficPolicy":
            return (self.title,) if self.features else ()
        return tuple(f"{self.title}#{one}" for one in self.features)

    @cached_property
    def age(self) -> tuple[str, str]:
        return (self.created or "9999", f"default/{self.name}")


@dataclass
class Verdict:
    """What holds, in order, and by whom the rest is beaten."""

    policies: list[str] = field(default_factory=list)
    traffic: list[str] = field(default_factory=list)
    ceilings: int = 0
    lost: dict[str, str] = field(default_factory=dict)


def _feature(unit: str) -> str:
    return unit.partition("#")[2]


def evaluate(policies: list[Plain], path: list[At]) -> Verdict:
    """Say what holds at the end of a path."""
    verdict = Verdict()
    closed: list[str] = []
    by_age = sorted(policies, key=lambda p: p.age)
    for kind in FAMILIES:
        those = [one for one in by_age if one.kind == kind]
        here = [(depth, one) for depth, at in enumerate(path) for one in those if at in one.aims]
        replaced, replacer = -1, ""
        for depth in range(len(path)):
            oldest = next((one for at, one in here if at == depth), None)
            if oldest is not None and oldest.merge == "Replace":
                replaced, replacer = depth, oldest.title
        standing: list[tuple[str, bool]] = []
        beaten: dict[str, str] = {}
        for depth, one in here:
            for unit in one.units:
                older = [
                    other
                    for at, other in here
                    if at == depth
                    and other.age < one.age
                    and (other.merge == "Override") == (one.merge == "Override")
                    and any(_feature(theirs) == _feature(unit) for theirs in other.units)
                ]
                if older and _feature(unit) != "closed":
                    beaten[unit] = next(
                        theirs for theirs in older[0].units if _feature(theirs) == _feature(unit)
                    )
                elif depth < replaced and one.merge != "Override" and _feature(unit) != "closed":
                    beaten[unit] = replacer
                else:
                    standing.append((unit, one.merge == "Override"))
        closed += [unit for unit, _ in standing if unit.endswith("#closed")]
        if kind == "XBackendTrafficPolicy":
            verdict.traffic += [unit for unit, _ in standing]
        elif kind == "BackendTrafficPolicy":
            leaves = [one for one in standing if not one[0].endswith("#closed")]
            ceilings = [unit for unit, override in leaves if override]
            defaults = [unit for unit, override in reversed(leaves) if not override]
            verdict.traffic = _once(ceilings + defaults)
            verdict.ceilings = len(_once(ceilings))
        else:
            verdict.policies = _security(standing, beaten)
        verdict.lost.update(beaten)
    verdict.policies = _once(closed + verdict.policies)
    for unit in (*verdict.policies, *verdict.traffic):
        verdict.lost.pop(unit, None)
    return verdict


def _security(standing: list[tuple[str, bool]], beaten: dict[str, str]) -> list[str]:
    found: list[str] = []
    rules = [one for one in standing if one[0].endswith("#authorization")]
    found += [unit for unit, override in rules if override]
    plain = [unit for unit, override in rules if not override]
    if plain:
        found.append(plain[-1])
        beaten.update(dict.fromkeys(plain[:-1], plain[-1]))
    for feature in ("#apiKeyAuth", "#basicAuth", "#jwt", "#extAuth"):
        those = [one for one in standing if one[0].endswith(feature)]
        above = [unit for unit, override in those if override]
        winner = above[0] if above else those[-1][0] if those else None
        if winner is not None:
            found.append(winner)
            beaten.update({unit: winner for unit, _ in those if unit != winner})
    return found


def _once(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))
