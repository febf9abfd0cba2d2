"""The command line, called as its users call it: exit statuses, texts, formats."""
