"""The control protocol: what agent and worker say to each other, and how."""
