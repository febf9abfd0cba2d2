"""Ingress as ingress-nginx 1.15.1 serves it: a naive evaluator, real nginx as an oracle, a generator, cases.

`naive` computes the expected answer from sentences, `nginx_servers` and `nginx_config` render what the controller would,
`nginx_oracle` runs it, `differ` compares any of them. Nothing here imports the product's translation.
"""
