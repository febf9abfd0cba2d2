"""Health of backends: the shared memory in which all workers count."""
