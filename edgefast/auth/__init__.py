"""Authentication: password hashes (htpasswd) and JSON Web Tokens (jwt). Pure: no I/O, no clock."""
