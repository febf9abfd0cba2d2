"""The build script of the cffi binding: what it reads out of headers, and that the binding agrees with the C compiler.

In: header texts. Out: declarations. Must never: need a compiler; the product's own module is already built.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast._csrc import ffi, lib
from edgefast.table.csrc_build import (
    order_headers,
    read_declarations,
    resolve_constants,
    strip_static,
)

pytestmark = pytest.mark.pure


def test_constants_are_integers_and_arithmetic() -> None:
    text = '#define A 7\n#define B (256u * 1024u)\n#define C (A - 1)\n#define D "text"\n#define E(x) (x)\n#define F\n'
    assert resolve_constants(text) == {"A": 7, "B": 262144, "C": 6}


def test_static_definitions_are_dropped() -> None:
    text = (
        "int a(void);\n"
        "static inline int b(int x) {\n    if (x) {\n        return 1;\n    }\n    return 0;\n}\n"
        "static const int c[2] = {1, 2};\n"
        "int d(void);\n"
    )
    assert strip_static(text).split() == ["int", "a(void);", "int", "d(void);"]


def test_declarations_follow_includes_and_sources(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text(
        '#include "z.h"\n/* ef_no(int) */\nint ef_yes(ef_t x);\nint ef_missing(void);\n'
    )
    (tmp_path / "z.h").write_text(
        "#ifndef Z\n#define N 4u\ntypedef struct ef_t { int v[N]; } ef_t;\n"
        '_Static_assert(sizeof(ef_t) == 16, "layout");\n#endif\n'
    )
    (tmp_path / "a.c").write_text('#include "a.h"\nint ef_yes(ef_t x) { return x.v[0]; }\n')
    headers = order_headers(tmp_path)
    assert [path.name for path in headers] == ["z.h", "a.h"]
    declared = read_declarations(headers, [tmp_path / "a.c"])
    assert declared.startswith("#define N 4\n")
    assert "int v[4];" in declared and "int ef_yes(ef_t x);" in declared
    assert "ef_missing" not in declared and "Static_assert" not in declared


def test_layouts_are_those_of_the_header() -> None:
    """cffi compares every field with the compiler's when the module is imported; these are what the header promises."""
    assert ffi.sizeof("struct ef_blob") == 128
    assert ffi.offsetof("struct ef_blob", "checksum") == 64
    assert ffi.sizeof("ef_slot") == 64
    assert ffi.sizeof("ef_cand") == 16
    assert ffi.sizeof("ef_pred") == 24
    assert ffi.sizeof("ef_span") == 24
    assert lib.EF_TABLE_MAGIC == int.from_bytes(b"EFB1", "little")
