"""Fail closed: objects with errors become placeholders that close what they cover: routes answer 500, policies deny."""
