"""Tests of edgefast/translate: golden cases, purity, incremental work."""
