"""What the wire tests stand on: proxy process, raw client, case files, reference parse and oracle."""
