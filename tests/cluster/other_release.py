"""A program of the release before or after this one, as far as the config stream can tell: of another table format."""

from __future__ import annotations

import importlib
import sys

from edgefast.table import format as formats

if __name__ == "__main__":
    formats._RECORDS = formats._RECORDS[:-1]
    del sys.argv[0]
    importlib.import_module(sys.argv[0]).main()
