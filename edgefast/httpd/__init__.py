"""The small HTTP/1.1 server of the processes: admin, metrics, readiness, console and the control socket."""
