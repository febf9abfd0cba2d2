"""Tests of the default release, which they share: an installation costs more than most of what is tested with it."""
