"""Tables as they are applied, and which listener, host and rule a request meets."""
