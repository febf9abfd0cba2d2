"""The engine in process: a real Engine on a real loop, real sockets, and eyes on everything it counts."""
