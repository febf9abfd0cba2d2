"""Keys of issuers: fetched by the agent, kept on disk for a while, and told to the workers whenever they differ."""
