"""csrc beside slow references and other parsers, and its own C tests under sanitizers."""
