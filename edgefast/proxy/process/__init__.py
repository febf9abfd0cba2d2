"""Operating system resources of agent and worker: descriptors, CPUs, heartbeat, service manager."""
