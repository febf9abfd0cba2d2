"""A Kubernetes cluster on one machine: a real control plane, pods as local processes with addresses of their own."""
