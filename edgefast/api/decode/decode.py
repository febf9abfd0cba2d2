"""Decode: the text of files into typed objects, with every mistake of every object at once.

In: bytes of YAML (many documents, Lists) or JSON. Out: `Decoded`: valid objects, and problems with file and line. An object with a problem
is left out; the others are not affected. Objects of an API server go through `decode_api_object`, which accepts unknown fields and records
them.
Must never: open a file, or raise for what a user wrote in one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.decode.chart_template import find_template
from edgefast.api.decode.document import (
    DEFAULT_NAMESPACE,
    Closing,
    Found,
    close_object,
    decode_object,
    repeated_fields,
)
from edgefast.api.decode.fail_closed.policy import (
    OWN_POLICIES,
    close_policy_object,
    note_newer,
    set_policy_target,
)
from edgefast.api.decode.fail_closed.readable import NAMELESS, name_stand_in
from edgefast.api.decode.json_text import read_json
from edgefast.api.decode.text import (
    DocumentMarks,
    Piece,
    PieceLines,
    Syntax,
    split_documents,
)
from edgefast.api.decode.walk import Walk
from edgefast.api.decode.yaml_text import ParsedDocument, SyntaxProblem, read_yaml
from edgefast.api.kinds import KINDS, Object
from edgefast.api.limits import MAX_DOCUMENTS, MAX_FILE_BYTES, MAX_PROBLEMS
from edgefast.api.loaded import Loaded, Path, Refused, render_path
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.model.route_name import ROUTE_KINDS
from edgefast.api.model.unsupported_fields import PLACES
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef, Problem, Severity, Source
from edgefast.diagnostics.reasons.word import Word


class Decoded(msgspec.Struct, frozen=True):
    """What came of a file."""

    objects: tuple[Loaded, ...] = ()
    problems: tuple[Problem, ...] = ()
    refused: tuple[Refused, ...] = ()
    policies: tuple[
        ForeignPolicy, ...
    ] = ()  # of other projects, and BackendTLSPolicies with an error
    unparsed: Problem | None = None  # the first reason why a part of the text is not decoded


class DecodeError(Exception):
    """An API object that cannot be built; `violations` says why."""

    def __init__(self, kind: str, violations: list[Violation]) -> None:
        shown = "; ".join(f"{render_path(one.path)} {one.reason}" for one in violations[:8])
        super().__init__(f"{kind}: {shown}")
        self.violations = violations


class DecodeCache:
    """What came of each document of each file the last time; give the same one again on reload.

    A document whose bytes are as before gives the identical object, wherever in the file it now
    stands. Only the last decoding of a file is kept.
    """

    def __init__(self) -> None:
        self._files: dict[str, dict[bytes, _PieceResult]] = {}

    def take(self, file: str) -> dict[bytes, _PieceResult]:
        """Hand out what is known of a file, and forget it here."""
        return self._files.pop(file, {})

    def keep(self, file: str, results: dict[bytes, _PieceResult]) -> None:
        """Keep what is now known of a file."""
        self._files[file] = results


class _PieceResult(msgspec.Struct, frozen=True, eq=False):
    """What came of one piece: (document, Found); lines count from 0 within it."""

    lines: PieceLines
    found: tuple[tuple[int, Found], ...] = ()
    error: SyntaxProblem | None = None


def decode_documents(
    data: bytes,
    file: str,
    cache: DecodeCache | None = None,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    adopt: bool = False,
) -> Decoded:
    """Decode a file; `file` is its name in problems, `namespace` is of objects that name none.

    `adopt`: decode documents of Envoy Gateway as those of edgefast.
    """
    if len(data) > MAX_FILE_BYTES:
        message = f"{len(data)} bytes (at most {MAX_FILE_BYTES})"
        long = Problem(None, "", "TooLong", message, source=Source(file, 1))
        return Decoded(problems=(long,), unparsed=long)
    known = cache.take(file) if cache else {}
    results: dict[bytes, _PieceResult] = {}
    objects: list[Loaded] = []
    refused: list[Refused] = []
    policies: list[ForeignPolicy] = []
    problems: list[Problem] = []
    unparsed: list[Problem] = []
    count = 0
    for piece in _pieces(data, file):
        result = known.get(piece.text) or results.get(piece.text)
        result = result or _decode_piece(piece, file, namespace, adopt=adopt)
        results[piece.text] = result
        count += len(result.found)
        if count > MAX_DOCUMENTS:
            message = f"more than {MAX_DOCUMENTS} documents (further documents are ignored)"
            source = Source(file, piece.line + 1)
            unparsed.append(Problem(None, "", "TooMany", message, source=source))
            break
        _place(result, file, piece.line, objects, refused, problems)
        if result.error is not None:
            source = Source(file, piece.line + result.error.line + 1)
            message = result.error.message
            unparsed.append(Problem(None, "", "Invalid", message, source=source))
        policies += _policies(result, file, piece.line)
    if cache:
        cache.keep(file, results)
    return Decoded(
        tuple(objects),
        _arrange([*problems, *unparsed], file),
        tuple(refused),
        tuple(policies),
        next(iter(unparsed), None),
    )


def _decode_piece(piece: Piece, file: str, namespace: str, *, adopt: bool) -> _PieceResult:
    found: list[tuple[int, Found]] = []
    try:
        text, syntax, documents = _read(piece.text, file)
        for index, document in enumerate(documents):
            found.extend((index, one) for one in decode_object(document, namespace, adopt=adopt))
    except SyntaxProblem as error:
        lines = PieceLines(piece.text, "yaml")
        mistake = find_template(piece.text) or error
        return _PieceResult(lines, tuple(found), mistake)
    return _PieceResult(PieceLines(text, syntax), tuple(found))


def _place(
    result: _PieceResult,
    file: str,
    base: int,
    objects: list[Loaded],
    refused: list[Refused],
    problems: list[Problem],
) -> None:
    """Give the results of a piece their place in the file."""
    for document, found in result.found:
        marks = DocumentMarks(result.lines, document, found.prefix, base)
        if found.obj is not None:
            objects.append(Loaded(found.obj, file, marks))
        elif found.ref is not None and found.severity == "error":
            closed = _place_closed(found.closed, file, marks) if found.closed else None
            refused.append(Refused(found.ref, file, marks, found.references, closed))
        for one in found.violations:
            source = Source(file, marks.line_of(one.path))
            problems.append(_problem(found.ref, one, source, found.severity))


def _place_closed(closed: Closing, file: str, marks: DocumentMarks) -> Loaded:
    """Give a closed object its place in the file, and that for a name when its own cannot be read."""
    loaded = Loaded(closed, file, marks)
    if closed.metadata.name != NAMELESS:
        return loaded
    named = msgspec.structs.replace(closed.metadata, name=name_stand_in(loaded.source))
    return Loaded(msgspec.structs.replace(closed, metadata=named), file, marks)


def _policies(result: _PieceResult, file: str, base: int) -> Iterator[ForeignPolicy]:
    for document, found in result.found:
        named = found.meant or found.ref
        reported = found.targets or found.fields or found.meant or found.lost
        if reported and named is not None:
            marks = DocumentMarks(result.lines, document, found.prefix, base)
            placed = ((one, Source(file, marks.line_of(one.path))) for one in found.targets)
            yield ForeignPolicy(
                ref=named,
                targets=tuple(placed),
                fields=found.fields,
                source=Source(file, marks.line_of(())),
                access_policies=found.access_policies,
                lost=found.lost,
            )


class LoadedConfig(msgspec.Struct, frozen=True, eq=False):
    """A configuration, its file, and what was written there: `raw` tells a value from a default."""

    config: EdgeGateway
    raw: Mapping[str, Any]
    file: str
    marks: DocumentMarks

    def problem(self, path: Path, reason: Word, message: str, severity: Severity) -> Problem:
        """Return a problem with the place of a field."""
        one = Violation(path, reason, message)
        return _problem(_CONFIG, one, Source(self.file, self.marks.line_of(path)), severity)


_CONFIG = ObjectRef("EdgeGateway", "", "")


def decode_config(data: bytes, file: str) -> tuple[EdgeGateway | None, tuple[Problem, ...]]:
    """Decode the configuration file: the configuration and (), or None and what is wrong."""
    loaded, problems = load_config(data, file)
    return loaded.config if loaded else None, problems


def load_config(data: bytes, file: str) -> tuple[LoadedConfig | None, tuple[Problem, ...]]:
    """Decode the configuration file and keep its places; None when anything in it is wrong."""
    loaded: LoadedConfig | None = None
    problems: list[Problem] = []
    found = 0
    for piece in _pieces(data, file):
        try:
            text, syntax, documents = _read(piece.text, file)
            for index, document in enumerate(documents):
                if document.value is None:
                    continue
                found += 1
                marks = DocumentMarks(PieceLines(text, syntax), index, (), piece.line)
                if found == 1:
                    loaded = _load_config(document, file, marks, problems)
                    continue
                extra = Violation((), "TooMany", "a second document (a file has one configuration)")
                source = Source(file, marks.line_of(()))
                problems.append(_problem(_CONFIG, extra, source, "error"))
        except SyntaxProblem as error:
            found += 1
            source = Source(file, piece.line + error.line + 1)
            problems.append(Problem(None, "", "Invalid", error.message, source=source))
    if not found:
        message = "no configuration in the file"
        problems.append(Problem(_CONFIG, "", "Required", message, source=Source(file, 1)))
    return (None if problems else loaded), _arrange(problems, file)


def _load_config(
    document: ParsedDocument, file: str, marks: DocumentMarks, problems: list[Problem]
) -> LoadedConfig | None:
    walk = Walk()
    config = walk.build(EdgeGateway, document.value)
    for one in (*repeated_fields(document), *walk.violations):
        source = Source(file, marks.line_of(one.path))
        problems.append(_problem(_CONFIG, one, source, "error"))
    return LoadedConfig(config, document.value, file, marks) if config is not None else None


_STRUCTS = {info.kind: info.struct for info in KINDS.values()}


class _Outline(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """What an object of the gateway groups has at its top and nothing beside it: the Structs pass over more."""

    api_version: str = ""
    kind: str = ""
    metadata: msgspec.Raw = msgspec.Raw()
    spec: msgspec.Raw = msgspec.Raw()
    status: msgspec.Raw = msgspec.Raw()


_OUTLINE = frozenset(_Outline.__struct_encode_fields__)


def decode_api_object(raw: Mapping[str, Any] | bytes | msgspec.Raw, kind: str) -> Object:
    """Decode an object of an API server: a mapping, or its JSON (a part of a list, perhaps).

    Unknown fields go into `unserved`, for translation to judge. DecodeError when the object cannot be
    built at all, msgspec.DecodeError for what is no JSON, KeyError for a kind that is not read.
    """
    struct = _STRUCTS[kind]
    try:
        if kind in PLACES:
            _check_outline(raw)
        if isinstance(raw, bytes | msgspec.Raw):
            obj = cast("Object", msgspec.json.decode(raw, type=struct))
        else:
            obj = cast("Object", msgspec.convert(raw, struct))
        # What the decoder notes is never a document's.
        obj = msgspec.structs.replace(obj, unserved=()) if obj.unserved else obj
        return cast("Object", set_policy_target(obj, None)) if kind in OWN_POLICIES else obj
    except msgspec.ValidationError:
        walk = Walk(kind, lenient=True, redact=kind == "Secret")
        value = msgspec.json.decode(raw) if isinstance(raw, bytes | msgspec.Raw) else raw
        built: Object | None = walk.build(struct, value)
        if built is None:
            raise DecodeError(kind, walk.violations) from None
        return cast("Object", set_policy_target(built, value))


#: Of objects of an API server these are closed. Without its class a fleet stays as it is.
_PLACES = (*ROUTE_KINDS, "Gateway", "ListenerSet", "HTTPRouteFilter", "RateLimitFilter")

_UNREADABLE = Violation((), "Invalid", "it cannot be read")


def close_api_object(raw: bytes | msgspec.Raw, ref: ObjectRef, error: Exception) -> Object | None:
    """Return what keeps the place of an object closed that cannot be built, None when it has none.

    Policies are closed whatever kept them from being built: who may enter their targets nobody can tell.
    """
    first = error.violations[0] if isinstance(error, DecodeError) else None
    if ref.kind in OWN_POLICIES:
        return close_policy_object(_read_plain(raw), ref, first or _UNREADABLE)
    if first is None or ref.kind not in _PLACES:
        return None
    value = msgspec.json.decode(raw)
    return close_object(value, ref, first) if isinstance(value, dict) else None


def keep_api_object(
    present: Object, raw: bytes | msgspec.Raw, ref: ObjectRef, error: Exception
) -> Object:
    """Return the version of an object that stays in force while the one after it cannot be built: of a policy with that noted."""
    if ref.kind not in OWN_POLICIES:
        return present
    first = error.violations[0] if isinstance(error, DecodeError) else _UNREADABLE
    return note_newer(present, close_policy_object(_read_plain(raw), ref, first))


def _read_plain(raw: bytes | msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _check_outline(raw: Mapping[str, Any] | bytes | msgspec.Raw) -> None:
    """Raise ValidationError for a field beside `spec` that is not known: the Structs pass over those."""
    if isinstance(raw, bytes | msgspec.Raw):
        msgspec.json.decode(raw, type=_Outline)
    elif not raw.keys() <= _OUTLINE:
        raise msgspec.ValidationError("a field beside spec")


#: What begins a document of YAML, before one that is JSON: that of a pair of \ud83d\ude00, say, is no YAML.
_BEGIN = re.compile(rb"\A---(?=\s*\{)")


def _pieces(data: bytes, file: str) -> Iterator[Piece]:
    data = data.removeprefix(b"\xef\xbb\xbf")
    if file.endswith(".json") or data.lstrip()[:1] == b"{":
        return iter((Piece(data, 0),))
    return split_documents(data)


def _read(text: bytes, file: str) -> tuple[bytes, Syntax, Iterable[ParsedDocument]]:
    """Return the documents of a piece and the syntax they turned out to be in."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start)
        raise SyntaxProblem("the text is not UTF-8", line) from None
    named_json = file.endswith(".json")
    plain = text if named_json else _BEGIN.sub(b"   ", text, count=1)
    if named_json or plain.lstrip()[:1] == b"{":
        try:
            return plain, "json", (read_json(plain),)
        except SyntaxProblem:
            # A YAML flow mapping begins like JSON; but a file that says .json must be JSON.
            if named_json:
                raise
    return text, "yaml", read_yaml(text)


def _problem(ref: ObjectRef | None, one: Violation, source: Source, severity: Severity) -> Problem:
    return Problem(
        object=ref,
        path=render_path(one.path),
        reason=one.reason,
        message=one.message,
        hint=one.hint,
        source=source,
        severity=one.severity or severity,
    )


def _arrange(problems: list[Problem], file: str) -> tuple[Problem, ...]:
    """Put problems in the order of their lines, and keep no more than anyone reads."""
    problems.sort(key=lambda one: one.source.line if one.source else 0)
    if len(problems) <= MAX_PROBLEMS:
        return tuple(problems)
    message = f"{len(problems)} problems (the first {MAX_PROBLEMS} are shown)"
    rest = Problem(None, "", "TooMany", message, source=problems[MAX_PROBLEMS].source)
    return (*problems[:MAX_PROBLEMS], rest)
