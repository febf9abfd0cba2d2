"""The tests of gateway-api-bench, by name, in the tests' cluster world: the same objects and loads for each gateway."""
