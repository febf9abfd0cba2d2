"""Tests of controller/kube without an API server: pure ones, and faults that a real server cannot be made to show."""
