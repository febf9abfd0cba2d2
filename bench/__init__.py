"""The bench: edgefast beside a C floor, nginx, haproxy and Envoy, in alternating rounds.

In: the proxies installed on this machine and a set of rows. Out: a table on standard output and a
file in bench/results/. Must never be imported by the product, and must never fail because a
number is bad: it measures, people judge. `python -m bench` runs it; README.md is the method.
"""

__all__: list[str] = []
