"""Fragment: one virtual host -> its resources: the root blob and, when it has very many rules, fragments of it.

In: ir.VirtualHost and the result of its last compilation. Out: `Compiled`. Entries go to fragments
by the hash of their path, so that a new route changes few of them. A fragment with the same matches
and rules as before is not rebuilt. The number of fragments is a power of two that keeps them around
48 KiB, and stays while they are not far from it.
Must never: number anything across fragments, or the change of one would show in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

import msgspec

from edgefast import ir
from edgefast._csrc import ffi, lib
from edgefast.api.model.route_name import ref_of_name
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.table.build import KIND, BlobBuilder, BlobEntry, BuildError, Depths, Predicate
from edgefast.table.shards import RESOURCE_LIMIT, Resource, make_resource

SPLIT_ABOVE = 64 * 1024  # bytes of a fragment (or of a whole root) above which there are more
JOIN_BELOW = 12 * 1024  # bytes of a fragment below which there are fewer
WANTED = 48 * 1024  # most bytes of a fragment after the number has changed
MAX_FRAGMENTS: int = lib.EF_MAX_FRAGMENTS

_ENTRY_BYTES = 200  # table bytes per entry, a first guess: slots of 64 bytes, 25 to 50 % full
_PREDICATE_BYTES = 24
_encode_rule = msgspec.msgpack.Encoder().encode

# The content of a blob is flat: match, rule, match, rule ... in order of precedence. It is compared by identity; a tuple
# per entry would be a hundred thousand objects for the garbage collector to visit.
Part = ir.Match | ir.Rule


class Compiled(msgspec.Struct, frozen=True):
    """What one object of the IR became; the last three are of a virtual host that is cut."""

    resources: tuple[Resource, ...]  # the root first
    problems: tuple[Problem, ...] = ()
    contents: tuple[tuple[Part, ...], ...] = ()  # of the fragments; () when whole
    depths: tuple[Depths, ...] = ()
    left_out: tuple[tuple[Problem, ...], ...] = ()  # of the fragments


def compile_virtual_host(
    host: ir.VirtualHost, previous: Compiled | None, builder: BlobBuilder
) -> Compiled:
    """Compile one virtual host. One that no table can hold answers 500 and is a problem."""
    count = max(1, len(previous.contents)) if previous is not None else guess_count(host)
    least = 1
    tried = set()
    try:
        while True:
            compiled = compile_cut(host, count, previous, builder)
            tried.add(count)
            if _is_too_large(compiled):
                least = count * 2
            fitting = max(least, fit_count(compiled, count))
            if fitting == count or (fitting in tried and count >= least):
                return compiled
            if fitting > MAX_FRAGMENTS:
                raise BuildError(
                    f"it does not fit into {MAX_FRAGMENTS} fragments of {RESOURCE_LIMIT} bytes"
                )
            count = fitting
    except BuildError as error:
        return _refuse(host, str(error), builder)


def _is_too_large(compiled: Compiled) -> bool:
    """Whether a resource is above the limit; raises BuildError when no number of fragments helps."""
    root, *fragments = compiled.resources
    if fragments and len(root.data) > RESOURCE_LIMIT:
        raise BuildError(
            f"its regex paths need {len(root.data)} bytes, the limit is {RESOURCE_LIMIT}"
        )
    for resource, content in zip(fragments, compiled.contents, strict=True):
        if len(resource.data) > RESOURCE_LIMIT:
            paths = {match.path for match in content[::2] if isinstance(match, ir.Match)}
            if len(paths) == 1:
                raise BuildError(
                    f'the path "{paths.pop()}" needs {len(resource.data)} bytes, the limit is {RESOURCE_LIMIT}'
                )
            return True
    return len(root.data) > RESOURCE_LIMIT


def fit_count(compiled: Compiled, count: int) -> int:
    """Return how many fragments a host should have that was cut into `count`: the same while they are not far off."""
    total = sum(len(resource.data) for resource in compiled.resources)
    cut = total - len(compiled.resources[0].data) if count > 1 else total
    if cut <= SPLIT_ABOVE * count and (count == 1 or cut >= JOIN_BELOW * count):
        return count
    return count_for(cut) if total > SPLIT_ABOVE else 1


def count_for(size: int) -> int:
    """Return the least number of fragments, a power of two, for that many bytes."""
    count = 2
    while size > WANTED * count and count < MAX_FRAGMENTS:
        count *= 2
    return count


def guess_count(host: ir.VirtualHost) -> int:
    """Return the number of fragments to begin with."""
    size = guess_size(host)
    return count_for(size) if size > SPLIT_ABOVE else 1


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


def compile_cut(
    host: ir.VirtualHost, count: int, previous: Compiled | None, builder: BlobBuilder
) -> Compiled:
    """Compile a host into a root and `count` fragments (a power of two; 1: the root alone), whatever their size."""
    name = f"{host.listener}/{host.hostname}"
    if count == 1:
        content = [part for e in host.entries for part in (e.match, host.rules[e.rule])]
        data, problems = _build_blob(name, content, builder)
        return Compiled((make_resource("virtual_host", name, data),), problems)
    reusable = previous if previous is not None and len(previous.contents) == count else None
    contents: list[tuple[Part, ...]] = []
    depths: list[Depths] = []
    left_out: list[tuple[Problem, ...]] = []
    resources: list[Resource] = []
    of_root, cut = _cut_entries(host, count)
    for index, content in enumerate(cut):
        if reusable is not None and _same(content, reusable.contents[index]):
            resources.append(reusable.resources[index + 1])
            depths.append(reusable.depths[index])
            left_out.append(reusable.left_out[index])
        else:
            key = f"{name}#{index}"
            data, problems = _build_blob(key, content, builder, fragments=count, fragment=index)
            resources.append(make_resource("fragment", key, data))
            depths.append(_read_depths(data))
            left_out.append(problems)
        contents.append(tuple(content))
    data, problems = _build_blob(name, of_root, builder, fragments=count, depths=depths)
    root = make_resource("virtual_host", name, data)
    found = tuple(problem for each in (problems, *left_out) for problem in each)
    return Compiled((root, *resources), found, tuple(contents), tuple(depths), tuple(left_out))


def _cut_entries(host: ir.VirtualHost, count: int) -> tuple[list[Part], list[list[Part]]]:
    """Divide entries: those of regex paths for the root, the others by the hash of their path."""
    rules = host.rules
    root: list[Part] = []
    cut: list[list[Part]] = [[] for _ in range(count)]
    path_hash = lib.ef_path_hash
    mask = count - 1
    for entry in host.entries:
        match = entry.match
        if match.kind == "regex":
            content = root
        else:
            path = match.path.encode()
            content = cut[path_hash(path, len(path)) >> 32 & mask]
        content.append(match)
        content.append(rules[entry.rule])
    return root, cut


def _same(a: Sequence[Part], b: Sequence[Part]) -> bool:
    return len(a) == len(b) and all(map(is_, a, b))


def _build_blob(
    name: str,
    content: Sequence[Part],
    builder: BlobBuilder,
    *,
    fragments: int = 1,
    fragment: int = -1,
    depths: Sequence[Depths] = (),
) -> tuple[bytes, tuple[Problem, ...]]:
    numbers: dict[int, int] = {}
    payloads: list[bytes] = []
    entries: list[BlobEntry] = []
    kept: list[tuple[ir.Match, ir.Rule]] = []
    problems: list[Problem] = []
    for match, rule in zip(content[::2], content[1::2], strict=True):
        assert isinstance(match, ir.Match) and isinstance(rule, ir.Rule)
        method = (
            lib.ef_method_lookup(match.method.encode(), len(match.method)) if match.method else 0
        )
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
    ref = ref_of_name(rule.route)
    return ObjectRef(ref.kind, ref.namespace, ref.name)


def _refuse(host: ir.VirtualHost, why: str, builder: BlobBuilder) -> Compiled:
    """Answer 500 for a host that no table can hold: its requests must not fall through to another host."""
    name = f"{host.listener}/{host.hostname}"
    reason = f"the virtual host {name} is too large: {why}"
    first = host.rules[0]
    rule = ir.Rule(
        route=first.route, index=first.index, source=first.source, status=500, reason=reason
    )
    data, _ = _build_blob(name, [ir.Match(kind="prefix", path=""), rule], builder)
    routes = sorted({each.route for each in host.rules})
    more = f" and {len(routes) - 3} more" if len(routes) > 3 else ""
    message = f"{reason}; all requests to it get 500 (routes {', '.join(routes[:3])}{more})"
    problem = Problem(_route_of(first), "spec.rules", "TooMany", message)
    return Compiled((make_resource("virtual_host", name, data),), (problem,))
