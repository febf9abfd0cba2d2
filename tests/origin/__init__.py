"""Test servers: what stands behind the proxy in tests, examples and demonstrations of faults.

`recording` keeps exactly what arrived and answers well, `scripted` answers badly on purpose, `message` is the strict
request parser both use, `answers` has the usual answers. All bind a free loopback port or a unix path.
"""
