"""The rows about policies: CPU that a policy adds to a request, beside peers with the same policy.

In: a policy's name, a load. Out: a `Table`. Each proxy has two processes: one without any policy, and one in which /get/kept has the policy and /get/open has not.
Samples are short and alternate over all of them, so that a slow second of the machine hits all; a figure is the median of the differences within a turn.
Must never count a request that was answered otherwise than with a whole 200.
"""

import http.client
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from statistics import median, quantiles

from bench import credentials
from bench.field import Bench, Entrant, Variant, open_field
from bench.generator import Load, run_load
from bench.login_provider import find_cookies
from bench.peers.peer import Running
from bench.policy_objects import SESSION
from bench.policy_ranges import CLIENT
from bench.process import read_run_seconds
from bench.scenario import Policy, Scenario
from bench.table import Table

PARTS = 8  # samples of which a round consists, for each process and path
WARM_SECONDS = 0.3
ENDPOINTS = 100
USERS = 100_000  # values of the header that is hashed
BODY = "/bytes/16384"  # of rows about encodings
ENCODINGS = ("gzip", "br", "zstd")
PATHS = {"none": "/open", "open": "/open", "kept": "/kept"}
STRANGER = "127.0.0.9"


@dataclass(frozen=True)
class Place:
    """One process and path: "none" without any policy, "open" and "kept" in the one that has it."""

    peer: str
    way: str
    running: Running


def make_load(policy: Policy, way: str, session: str = "") -> Load:
    """The same requests but for the path; `session`: what a proxy has told of one."""
    load = Load(suffix=PATHS[way])
    if policy == "session":
        return replace(load, header=f"{SESSION}: {session}")
    if policy == "oidc":
        return replace(load, header=f"Cookie: {session}")
    if policy == "jwt":
        return replace(load, header=f"Authorization: Bearer {_token()}")
    if policy == "hash":
        return replace(load, users=USERS)
    return (
        replace(load, suffix=load.suffix + BODY, encoding=policy) if policy in ENCODINGS else load
    )


def _token() -> str:
    if not _made:
        _made.append(credentials.make_token("RS256", "ann"))
    return _made[0]


_made: list[str] = []


def measure_policy(bench: Bench, name: str, title: str, policy: Policy) -> Table:
    """A line for each proxy."""
    header = ["proxy", "us/request without", "beside it in its process", "with the policy"]
    header += [
        "added us (quartiles)",
        "added / a request",
        "added / nginx's",
        "added / Envoy's",
        "errors",
    ]
    table = Table(name, title, header)
    endpoints = ENDPOINTS if policy in ("hash", "session") else 1
    plain = Scenario(endpoints=endpoints)
    variants = [Variant("none", plain), Variant("kept", replace(plain, policy=policy))]
    peers = [one for one in bench.peers if one.policies]
    with open_field(replace(bench, peers=peers), variants) as field:
        places = _list_places(field.entrants, policy, table)
        find = find_cookies if policy == "oidc" else _find_session
        sessions = {one.peer: find(one.running) for one in places if one.way == "kept"}
        loads = {
            (one.peer, one.way): make_load(policy, one.way, sessions[one.peer]) for one in places
        }
        taken, errors = _take(bench, places, loads)
    for label, reason in field.missing.items():
        table.add_missing(label, reason)
    added: dict[str, list[float]] = {}
    for peer in dict.fromkeys(one.peer for one in places):
        added[peer] = [k - o for k, o in zip(taken[peer, "kept"], taken[peer, "open"], strict=True)]
    for peer, values in added.items():
        _add_line(table, peer, taken, added, values, errors[peer])
    table.notes.append(
        f"medians of {bench.rounds * PARTS} alternating samples of {bench.seconds / PARTS:g} s; added: with the policy, less the other path of the "
        "same process, within a turn; a second request costs what one costs without."
    )
    return table


def _list_places(entrants: Sequence[Entrant], policy: Policy, table: Table) -> list[Place]:
    """Those that do what is asked; the others have a line that says why not."""
    ways: dict[str, dict[str, Running]] = {}
    for one in entrants:
        ways.setdefault(one.running.peer.name, {})[one.variant.label] = one.running
    places = []
    for peer, runs in ways.items():
        if len(runs) < 2:  # the field says why
            continue
        if reason := _find_fault(runs["kept"], policy):
            table.add_missing(peer, reason)
            continue
        places += [Place(peer, way, runs["none" if way == "none" else "kept"]) for way in PATHS]
    return places


def _find_fault(running: Running, policy: Policy) -> str | None:
    """Why what it does is not the policy; None: it is."""
    headers = {"Host": running.setup.scenario.make_route(0).host}
    suffix = BODY if policy in ENCODINGS else ""
    if policy in ENCODINGS:
        headers["Accept-Encoding"] = policy
    if policy == "jwt":
        status, _ = _ask(running, "/get/kept", headers)
        if status != 401:
            return f"/get/kept without a token was answered {status}"
        headers["Authorization"] = f"Bearer {_token()}"
    if policy == "oidc":
        status, _ = _ask(running, "/get/kept", headers)
        if status not in (302, 401):
            return f"/get/kept without a session was answered {status}"
        headers["Cookie"] = find_cookies(running)
    for way in ("open", "kept"):
        status, encoding = _ask(running, f"/get/{way}{suffix}", headers)
        if status != 200:
            return f"/get/{way} was answered {status}"
        if policy in ENCODINGS and encoding != (policy if way == "kept" else None):
            return f"/get/{way} has content-encoding {encoding}"
    if policy == "session":
        told = _find_session(running)
        headers[SESSION] = told
        if not told or _ask(running, "/get/kept", headers, name=SESSION)[1] is not None:
            return f"/get/kept tells the session {told}, and another one after it"
    if policy == "cidr":
        status, _ = _ask(running, "/get/kept", headers, STRANGER)
        if status != 403:
            return f"/get/kept from {STRANGER} was answered {status}"
    return None


def _find_session(running: Running) -> str:
    """What a client is told that has none; "" where there are no sessions."""
    headers = {"Host": running.setup.scenario.make_route(0).host}
    return _ask(running, "/get/kept", headers, name=SESSION)[1] or ""


def _ask(
    running: Running,
    path: str,
    headers: dict[str, str],
    source: str = CLIENT,
    name: str = "content-encoding",
) -> tuple[int, str | None]:
    """The status, and what the answer has of a header."""
    client = http.client.HTTPConnection(
        CLIENT, running.setup.port, timeout=5, source_address=(source, 0)
    )
    try:
        client.request("GET", path, headers=headers)
        answer = client.getresponse()
        answer.read()
        return answer.status, answer.getheader(name)
    except (OSError, http.client.HTTPException):
        return 0, None
    finally:
        client.close()


Taken = dict[tuple[str, str], list[float]]


def _take(
    bench: Bench, places: Sequence[Place], loads: dict[tuple[str, str], Load]
) -> tuple[Taken, dict[str, int]]:
    """Microseconds of CPU per request, by proxy and way; errors by proxy."""
    taken: Taken = {(one.peer, one.way): [] for one in places}
    errors = dict.fromkeys((one.peer for one in places), 0)
    for one in places:
        _sample(bench, one, loads[one.peer, one.way], WARM_SECONDS)
    for number in range(bench.rounds * PARTS):
        turn = number % max(len(places), 1)
        for one in [*places[turn:], *places[:turn]]:
            us, wrong = _sample(bench, one, loads[one.peer, one.way], bench.seconds / PARTS)
            taken[one.peer, one.way].append(us)
            errors[one.peer] += wrong
    return taken, errors


def _sample(bench: Bench, place: Place, load: Load, seconds: float) -> tuple[float, int]:
    running = place.running
    pids = running.pids()
    before = read_run_seconds(pids)
    result = run_load(load, running.setup.scenario, running.setup.port, seconds, bench.folder)
    spent = read_run_seconds(pids) - before
    return spent * 1e6 / max(result.requests, 1), result.errors


def _add_line(
    table: Table,
    peer: str,
    taken: Taken,
    added: dict[str, list[float]],
    values: list[float],
    errors: int,
) -> None:
    each = {way: median(taken[peer, way]) for way in PATHS}
    low, middle, high = quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    unused = [o - n for o, n in zip(taken[peer, "open"], taken[peer, "none"], strict=True)]
    found = {
        "cpu_us": each["kept"],
        "added": middle,
        "of_request": middle / each["none"],
        "unused": median(unused),
    }
    for other in ("nginx", "envoy"):
        if other in added and other != peer:
            found[other] = _ratio(middle, median(added[other]))
    table.values[peer] = {key: value for key, value in found.items() if not isnan(value)}
    line = [peer, *(f"{each[way]:.2f}" for way in PATHS)]
    line += [f"{middle:.2f} ({low:.2f} to {high:.2f})", f"{found['of_request']:.2f}"]
    shown = [found.get(one, nan) for one in ("nginx", "envoy")]
    line += ["-" if isnan(one) else f"{one:.2f}" for one in shown]
    table.lines.append([*line, str(errors)])


def _ratio(mine: float, theirs: float) -> float:
    """Of what is added; where the other adds nothing that can be measured there is none."""
    return mine / theirs if theirs > 0 else nan
