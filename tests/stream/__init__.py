"""Tests of edgefast.xds; not named after it, because `xds` is a package of xds-protos."""
