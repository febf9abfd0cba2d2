"""The cffi binding of csrc (built by edgefast/table/csrc_build.py): functions and constants are attributes of `lib`."""

from typing import Any

from cffi import FFI

ffi: FFI
lib: Any
