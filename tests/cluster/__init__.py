"""Tests against a real Kubernetes control plane; `make test-cluster` runs them, nothing else does."""
