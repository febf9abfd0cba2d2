"""One request: filters, tries, deadlines, mirrors, how it ended."""
