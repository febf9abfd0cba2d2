"""Listening sockets: bound by the agent, or inherited from before it; kept for workers and for the next process."""
