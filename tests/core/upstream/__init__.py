"""Clusters: choice, health, names, pools, shares of slow bodies."""
