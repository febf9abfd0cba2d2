"""Tests of controller/fleets: golden manifests, the applier and the observer against a server that is not there."""
