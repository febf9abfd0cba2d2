"""Listening sockets: bound by the agent or inherited; kept for workers and for the next process."""
