"""Which location takes a request: the decoded path, hosts without regular expressions, hosts with them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ingress.naive.hosts import Host, Location


@dataclass(frozen=True)
class Served:
    """A location as the server of a host has it: a declared path may become two of them."""

    path: str
    exact: bool
    location: Location


class BadTarget(Exception):
    """nginx answers 400: a NUL, a bad escape, or a path above the root."""


def normalise(target: str) -> str:
    """Matching uses the decoded, normalised URI: without query, %XX decoded once, `//` merged, dot segments resolved."""
    raw = target.partition("?")[0]
    if re.search(r"%(?![0-9A-Fa-f]{2})", raw) or "%00" in raw:
        raise BadTarget
    path = re.sub(r"%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), raw)
    path = re.sub(r"/+", "/", path)
    parts: list[str] = []
    pieces = path.split("/")[1:]
    for number, piece in enumerate(pieces, 1):
        if piece == ".." and not parts:
            raise BadTarget
        if piece == "..":
            parts.pop()
        elif piece not in ("", "."):
            parts.append(piece)
        if number == len(pieces) and piece in ("", ".", ".."):
            parts.append("")
    return "/" + "/".join(parts)


def served_locations(host: Host) -> list[Served]:
    """Locations in order of descending path length, then reverse alphabetical. Prefix paths are split into `/foo/` and `/foo`,
    except `/`, and those of an Ingress with use-regex or an effective rewrite-target."""
    ordered = sorted(host.locations, key=lambda one: one.path, reverse=True)
    ordered.sort(key=lambda one: len(one.path), reverse=True)
    exact = {one.path for one in host.locations if one.exact}
    served: list[Served] = []
    for one in ordered:
        plain = not one.exact and one.path != "/"
        if not plain or one.rewrites(one.path) or one.flag("use-regex"):
            served.append(Served(one.path, one.exact, one))
            continue
        served.append(Served(one.path if one.path.endswith("/") else one.path + "/", False, one))
        if one.path not in exact:
            served.append(Served(one.path, True, one))
    return served


def is_regex(host: Host) -> bool:
    """One Ingress with `use-regex: "true"`, or one rewrite-target that differs from its path, makes the whole host a regex host.

    The path is the one of the split location: Prefix `/foo` with target `/foo` became `/foo/`, which differs.
    """
    return any(
        one.location.flag("use-regex") or one.location.rewrites(one.path)
        for one in served_locations(host)
    )


@dataclass(frozen=True)
class Match:
    """The location of a request; `slash`: nginx answers 301 to the path with a slash."""

    served: Served
    slash: bool = False


def match(host: Host, path: str) -> Match:
    """The location of a path."""
    served = served_locations(host)
    return _match_regex(served, path) if is_regex(host) else _match_plain(served, path)


def _match_plain(served: list[Served], path: str) -> Match:
    """Exact matches exactly and beats Prefix. The longest prefix wins.

    For a path that ends in `/` (Prefix or Exact `/dir/`), a request for `/dir` gets nginx' own 301 to `/dir/`, unless
    something matches `/dir` exactly or the location is closed.
    """
    for one in served:
        if one.exact and one.path == path:
            return Match(one)
    slashed = [one for one in served if one.path == path + "/"]
    if any(is_open(one.location) for one in slashed):
        return Match(next((one for one in slashed if one.exact), slashed[0]), slash=True)
    prefixes = [one for one in served if not one.exact and path.startswith(one.path)]
    return Match(max(prefixes, key=lambda one: len(one.path)))


def _match_regex(served: list[Served], path: str) -> Match:
    """Every location of that server, Exact ones and those of other Ingresses too, is `~* "^path"`: prefix, case-insensitive,
    tried in order."""
    for one in served:
        if re.match(one.path.encode("latin-1"), path.encode("latin-1"), re.IGNORECASE):
            return Match(one)
    raise AssertionError("the path / matches everything")


def is_open(location: Location) -> bool:
    """No annotation of the owner closes the location."""
    return location.owner is None or not location.owner.closed()
