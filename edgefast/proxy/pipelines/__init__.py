"""Pipelines: the sources of tables (files or a controller), and the messages at start."""
