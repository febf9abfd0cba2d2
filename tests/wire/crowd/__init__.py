"""What ordinary requests wait for beside thousands of slow clients."""
