"""The control protocol: messages between agent and worker, and their transport."""
