"""Tables: the shared memory of all workers, the table of each worker, and the last valid table on disk."""
