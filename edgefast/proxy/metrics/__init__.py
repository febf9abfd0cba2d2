"""Metrics: workers' counters in shared memory, and the pages that scrapers read."""
