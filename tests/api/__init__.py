"""Tests of edgefast/api: decoding, rules, snapshots, schemas. No sockets, no files written."""
