"""Build script of `edgefast._csrc`: the cffi (API mode) binding of every public function in csrc/*.h.

In: the headers and sources in csrc/. Out: `ffi`, the builder that setup.py names in `cffi_modules`; run as a script it
builds the module in place. The declarations are read from the headers themselves, so the Python side cannot drift from
the C side: comments, preprocessor lines, static functions and static assertions are dropped, integer #defines become
constants, and a declaration that no source defines is left out (it could not be called).
It must never be imported by the product, and it changes nothing but build outputs.
"""

from __future__ import annotations

import ast
import os
import re
import sysconfig
from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).resolve().parent.parent.parent
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
_DEFINE = re.compile(r"^\s*#\s*define\s+([A-Za-z_]\w*)[ \t]+(.+?)\s*$", re.M)
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
_DIRECTIVE = re.compile(r"^\s*#(?:[^\n\\]|\\.|\\\n)*\n", re.M)
_STATIC_ASSERT = re.compile(r"_Static_assert\s*\(.*?\)\s*;", re.S)
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)", re.S)
_FUNCTION = re.compile(r"^[A-Za-z_][\w\s*]*?\b(ef_\w+)\s*\([^;{}()]*\)\s*;", re.M)


def order_headers(folder: Path) -> list[Path]:
    """All headers of a folder, every one after those it includes."""
    texts = {path.name: _COMMENT.sub(" ", path.read_text()) for path in sorted(folder.glob("*.h"))}
    ordered: list[str] = []

    def visit(name: str) -> None:
        if name in texts and name not in ordered:
            for included in _INCLUDE.findall(texts[name]):
                visit(included)
            if name not in ordered:
                ordered.append(name)

    for name in texts:
        visit(name)
    return [folder / name for name in ordered]


def resolve_constants(text: str) -> dict[str, int]:
    """The integer #defines of a text: plain numbers and arithmetic over earlier ones; all others are passed over."""
    known: dict[str, int] = {}
    for name, raw in _DEFINE.findall(text):
        value = _integer(_SUFFIX.sub(r"\1", raw), known)
        if value is not None:
            known[name] = value
    return known


def _integer(expression: str, known: dict[str, int]) -> int | None:
    names = re.sub(r"\b[A-Za-z_]\w*\b", lambda m: str(known.get(m[0], m[0])), expression)
    try:
        tree = ast.parse(names.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return None
    allowed = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)
    if not all(isinstance(node, allowed) for node in ast.walk(tree)):
        return None
    value = eval(
        compile(tree, "<define>", "eval"), {"__builtins__": {}}
    )  # numbers and operators only
    return value if isinstance(value, int) else None


def strip_static(text: str) -> str:
    """The text without `static` functions and data: they are not symbols that a binding can reach."""
    out: list[str] = []
    at = 0
    for match in re.finditer(r"^[ \t]*static\b", text, re.M):
        if match.start() < at:
            continue
        out.append(text[at : match.start()])
        at = _end_of_definition(text, match.end())
    out.append(text[at:])
    return "".join(out)


def _end_of_definition(text: str, at: int) -> int:
    depth = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0 and "=" not in text[text.rfind("\n", 0, text.rfind("{", 0, at)) : at]:
                return at
        elif char == ";" and depth == 0:
            return at
    return at


def read_declarations(headers: list[Path], sources: list[Path]) -> str:
    """What cffi's cdef reads: constants first, then types and functions in header order."""
    text = "\n".join(_COMMENT.sub(" ", path.read_text()) for path in headers)
    constants = resolve_constants(text)
    body = _DIRECTIVE.sub("\n", text + "\n")
    body = strip_static(_ATTRIBUTE.sub(" ", _STATIC_ASSERT.sub(" ", body)))
    code = "\n".join(_COMMENT.sub(" ", path.read_text()) for path in sources)
    defined = set(re.findall(r"\b(ef_\w+)\s*\([^;{}]*\)\s*\{", code))
    body = _FUNCTION.sub(lambda m: m[0] if m[1] in defined else "", body)
    for name in constants:  # array lengths: plain numbers
        body = re.sub(rf"\b{name}\b", str(constants[name]), body)
    defines = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    return defines + body


def make_ffi(root: Path = ROOT) -> FFI:
    """The configured builder; source paths are relative to the project root, where setuptools runs."""
    headers = order_headers(root / "csrc")
    sources = sorted((root / "csrc").glob("*.c"))
    debug = os.environ.get("EDGEFAST_DEBUG") == "1"
    builder = FFI()
    builder.cdef(read_declarations(headers, sources))
    included = {name for path in headers for name in _INCLUDE.findall(path.read_text())}
    # limits.h only through the others: from here that name may find the system's header.
    includes = "".join(f'#include "{path.name}"\n' for path in headers if path.name not in included)
    builder.set_source(
        "edgefast._csrc",
        # The glue that cffi writes is not ours to lint; our own sources keep every warning.
        '#pragma GCC diagnostic ignored "-Wconversion"\n' + includes,
        sources=[str(path.relative_to(root)) for path in sources],
        depends=[str(path.relative_to(root)) for path in headers],
        libraries=["m"],
        extra_compile_args=[
            *(["-O1", "-g", "-UNDEBUG"] if debug else ["-O2"]),
            *["-std=c11", *WARNINGS],
            *["-iquote", "csrc"],  # not -I: csrc/limits.h would hide the system's <limits.h>
            # A directory given as a system one too loses its warnings: Python.h does not pass -Wconversion.
            *["-isystem", sysconfig.get_path("include")],
        ],
    )
    return builder


ffi = make_ffi()

if __name__ == "__main__":
    os.chdir(ROOT)
    built = Path(ffi.compile(target="_csrc.abi3.so"))  # the name that setup.py gives it
    for leftover in [*ROOT.glob("csrc/*.o"), *built.parent.glob("_csrc.[co]")]:
        leftover.unlink()
