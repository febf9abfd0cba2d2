"""The official Gateway API conformance suite against the real controller, chart and proxies in a world of its own."""
