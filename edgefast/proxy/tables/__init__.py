"""Tables: in the memory that all workers share, which worker holds which, and the last good one on disk."""
