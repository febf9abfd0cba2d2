"""The cffi binding of csrc (built by edgefast/table/csrc_build.py): functions and constants are attributes of `lib`."""

from typing import Any

ffi: Any
lib: Any
