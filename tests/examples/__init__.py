"""Every example is run: its curl lines are the test cases, and what its comments promise is asserted."""
