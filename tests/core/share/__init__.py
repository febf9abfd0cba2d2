"""Shares of clients in bounded resources."""
