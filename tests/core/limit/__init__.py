"""Rate limits inside a worker, with stores that answer when a test says so."""
