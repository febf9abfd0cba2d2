"""Rate limits' counters: the memory that workers count in, the store in use, and counters as rows."""
