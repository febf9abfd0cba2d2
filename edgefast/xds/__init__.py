"""The config stream between controller and proxies: delta xDS with resource types of our own.

It must never decide what is sent to whom (controller/push), nor what becomes of it (proxy/pipelines/managed.py).
"""
