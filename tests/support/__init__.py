"""Builders that the tests of several rooms share."""
