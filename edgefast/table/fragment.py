"""One virtual host -> its resources: the root blob and, when it has very many rules, fragments of it.

In: ir.VirtualHost and what its last compilation left. Out: `Compiled`. Entries go to fragments by the hash of their
path, so that one route more changes few of them; a fragment with the same matches and rules as before is not built
again. The number of fragments is a power of two that keeps them around 48 KiB, and stays while they are not far from it.
Must never: number anything across fragments, or the change of one would show in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

import msgspec

from edgefast import ir
from edgefast._csrc import ffi, lib
from edgefast.problem import ObjectRef, Problem
from edgefast.table.build import KIND, BlobBuilder, BlobEntry, BuildError, Depths, Predicate
from edgefast.table.shards import RESOURCE_LIMIT, Resource, make_resource

SPLIT_ABOVE = 64 * 1024  # bytes of a fragment (or of a whole root) above which there are more
JOIN_BELOW = 12 * 1024  # bytes of a fragment below which there are fewer
WANTED = 48 * 1024  # most bytes of a fragment after the number has changed
MAX_FRAGMENTS: int = lib.EF_MAX_FRAGMENTS

_ENTRY_BYTES = 200  # of the tables per entry: a slot at 37 % on average, a candidate; only a first guess
_PREDICATE_BYTES = 24
_encode_rule = msgspec.msgpack.Encoder().encode

# A fragment's content: match, rule, match, rule ... in order of precedence. Compared by identity.
Content = tuple[object, ...]


class Compiled(msgspec.Struct, frozen=True):
    """What one object of the IR became; the last three are of a virtual host that is cut."""

    resources: tuple[Resource, ...]  # the root first
    problems: tuple[Problem, ...] = ()
    contents: tuple[Content, ...] = ()  # of the fragments; () when whole
    depths: tuple[Depths, ...] = ()
    left_out: tuple[tuple[Problem, ...], ...] = ()  # of the fragments


def compile_virtual_host(
    host: ir.VirtualHost, previous: Compiled | None, builder: BlobBuilder
) -> Compiled:
    """Compile one virtual host. One that no table can hold answers 500 and is a problem."""
    name = f"{host.listener}/{host.hostname}"
    try:
        if previous is not None and previous.contents:
            count = len(previous.contents)
        else:
            count = fit_count(guess_size(host), 1)
        for _ in range(4):  # a guess, then what came out; the number of fragments settles at once
            part = _compile_cut(host, name, count, previous, builder)
            total = sum(len(r.data) for r in part.resources)
            fitting = fit_count(total, count)
            largest = max(len(r.data) for r in part.resources[1:] or part.resources)
            if largest > RESOURCE_LIMIT and fitting <= count:
                fitting = count * 2
            if fitting == count or fitting > MAX_FRAGMENTS:
                break
            count = fitting
        for resource in part.resources:
            if len(resource.data) > RESOURCE_LIMIT:
                raise BuildError(
                    f"{len(resource.data)} bytes of table for "
                    f"{'its regex paths' if resource is part.resources[0] else 'one path'}, "
                    f"the limit is {RESOURCE_LIMIT}"
                )
    except BuildError as error:
        return _refuse(host, name, str(error), builder)
    return part


def fit_count(total: int, count: int) -> int:
    """Return how many fragments `total` bytes should have, given that there are `count`."""
    if total / count <= SPLIT_ABOVE and (count == 1 or total / count >= JOIN_BELOW):
        return count
    if total <= SPLIT_ABOVE:
        return 1
    fitting = 2
    while total / fitting > WANTED and fitting < MAX_FRAGMENTS:
        fitting *= 2
    return fitting


def guess_size(host: ir.VirtualHost) -> int:
    """Return about how many bytes the blobs of a host will have."""
    if len(host.entries) < 16:
        return 0  # too few to cut, whatever they weigh: what comes out decides
    payloads = [len(_encode_rule(rule)) for rule in host.rules]
    return sum(
        _ENTRY_BYTES
        + payloads[entry.rule]
        + len(entry.match.path)
        + _PREDICATE_BYTES * (len(entry.match.headers) + len(entry.match.query))
        for entry in host.entries
    )


def _compile_cut(
    host: ir.VirtualHost, name: str, count: int, previous: Compiled | None, builder: BlobBuilder
) -> Compiled:
    """Compile a host into a root and `count` fragments (1: the root alone)."""
    rules = host.rules
    pairs = [(entry.match, rules[entry.rule]) for entry in host.entries]
    if count == 1:
        data, problems = _build_blob(name, pairs, builder)
        return Compiled((make_resource("virtual_host", name, data),), problems)
    reusable = previous if previous is not None and len(previous.contents) == count else None
    contents, depths, left_out = [], [], []
    resources: list[Resource] = []
    root_pairs, cut = _cut_pairs(pairs, count)
    for index, part in enumerate(cut):
        content = tuple(part)
        if reusable is not None and _same(content, reusable.contents[index]):
            resources.append(reusable.resources[index + 1])
            depths.append(reusable.depths[index])
            left_out.append(reusable.left_out[index])
        else:
            key = f"{name}#{index}"
            mine = list(zip(part[::2], part[1::2], strict=True))
            data, problems = _build_blob(key, mine, builder, fragments=count, fragment=index)
            resources.append(make_resource("fragment", key, data))
            depths.append(_read_depths(data))
            left_out.append(problems)
        contents.append(content)
    data, problems = _build_blob(name, root_pairs, builder, fragments=count, depths=depths)
    root = make_resource("virtual_host", name, data)
    found = tuple(problem for each in (problems, *left_out) for problem in each)
    return Compiled((root, *resources), found, tuple(contents), tuple(depths), tuple(left_out))


def _cut_pairs(
    pairs: list[tuple[ir.Match, ir.Rule]], count: int
) -> tuple[list[tuple[ir.Match, ir.Rule]], list[list[ir.Match | ir.Rule]]]:
    """Divide entries: those of regex paths for the root, the others by the hash of their path."""
    root = []
    cut: list[list[ir.Match | ir.Rule]] = [[] for _ in range(count)]
    path_hash = lib.ef_path_hash
    mask = count - 1
    for pair in pairs:
        match = pair[0]
        if match.kind == "regex":
            root.append(pair)
        else:
            path = match.path.encode()
            cut[path_hash(path, len(path)) >> 32 & mask] += pair
    return root, cut


def _same(a: Content, b: Content) -> bool:
    return len(a) == len(b) and all(map(is_, a, b))


def _build_blob(
    name: str,
    pairs: Sequence[tuple[ir.Match | ir.Rule, ir.Match | ir.Rule]],
    builder: BlobBuilder,
    *,
    fragments: int = 1,
    fragment: int = -1,
    depths: Sequence[Depths] = (),
) -> tuple[bytes, tuple[Problem, ...]]:
    numbers: dict[int, int] = {}
    payloads = []
    entries = []
    kept = []
    problems = []
    for match, rule in pairs:
        assert isinstance(match, ir.Match) and isinstance(rule, ir.Rule)
        method = lib.ef_method_lookup(match.method.encode(), len(match.method)) if match.method else 0
        if match.method and method == 0:
            problems.append(_left_out(match, rule, f'unknown method "{match.method}"'))
            continue
        number = numbers.get(id(rule))
        if number is None:
            number = numbers[id(rule)] = len(payloads)
            payloads.append(_encode_rule(rule))
        entries.append(
            BlobEntry(
                number,
                KIND[match.kind],
                match.path.encode(),
                method,
                _predicates(match.headers) if match.headers else (),
                _predicates(match.query) if match.query else (),
            )
        )
        kept.append((match, rule))
    data, refused = builder.build(
        name.encode(), payloads, entries, fragments=fragments, fragment=fragment, depths=depths
    )
    problems += [_left_out(*kept[place], why) for place, why in refused.items()]
    return data, tuple(problems)


def _predicates(matches: tuple[ir.ValueMatch, ...]) -> list[Predicate]:
    return [Predicate(m.name.encode(), m.value.encode(), m.regex) for m in matches]


def _read_depths(data: bytes) -> Depths:
    blob = ffi.cast("const ef_blob *", ffi.from_buffer(data))
    prefix, exact = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    longest = ffi.new("uint32_t *")
    lib.ef_blob_depths(blob, prefix, exact, longest)
    return Depths(prefix[0], exact[0], longest[0])


def _left_out(match: ir.Match, rule: ir.Rule, why: str) -> Problem:
    message = f'{match.kind} path "{match.path}" is not served: {why}'
    return Problem(_route_of(rule), f"spec.rules[{rule.index}].matches", "Invalid", message)


def _route_of(rule: ir.Rule) -> ObjectRef:
    namespace, _, name = rule.route.rpartition("/")
    return ObjectRef("HTTPRoute", namespace, name)


def _refuse(host: ir.VirtualHost, name: str, why: str, builder: BlobBuilder) -> Compiled:
    """Answer 500 for a host that no table can hold: its rules must not fall through to those of another host."""
    reason = f"the virtual host {name} is too large: {why}"
    first = host.rules[0]
    rule = ir.Rule(route=first.route, index=first.index, source=first.source, status=500, reason=reason)
    match = ir.Match(kind="prefix", path="")
    data, _ = _build_blob(name, [(match, rule)], builder)
    routes = sorted({rule.route for rule in host.rules})
    shown = ", ".join(routes[:3]) + (f" and {len(routes) - 3} more" if len(routes) > 3 else "")
    problem = Problem(
        _route_of(first), "spec.rules", "TooMany", f"{reason}; every request to it is answered with 500 (routes {shown})"
    )
    return Compiled((make_resource("virtual_host", name, data),), (problem,))
