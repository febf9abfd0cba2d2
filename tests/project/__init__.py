"""Promises about the project itself: import contracts, file sizes, README, changelog, packages."""
