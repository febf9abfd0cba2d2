"""Benchmarks of the control plane in a whole cluster (tests/cluster): propagation, memory, steady CPU."""
