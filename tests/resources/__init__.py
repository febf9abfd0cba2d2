"""Tests of edgefast/resources: decoding, rules, snapshots, schemas. No sockets, no files written."""
