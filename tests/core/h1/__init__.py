"""HTTP/1.1 connections of clients and to backends."""
