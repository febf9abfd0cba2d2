"""Pipelines: where tables come from (files, or a controller), and what is said about them at the start."""
