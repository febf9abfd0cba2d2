"""Objects with errors become placeholders that keep their place closed: routes answer 500, policies deny."""
