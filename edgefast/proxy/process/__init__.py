"""What a process of either kind has of the system: descriptors, CPUs, a sign of life, a service manager."""
