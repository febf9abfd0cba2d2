"""The node agent: pods as local processes, Service names, load balancer addresses; one asyncio process per world."""
