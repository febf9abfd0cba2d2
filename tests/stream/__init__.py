"""Tests of edgefast.xds."""
