"""Tests of what every long-running process has."""
