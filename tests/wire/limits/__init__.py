"""Rate limits, end to end: real proxies, a real redis-server, real overload."""
