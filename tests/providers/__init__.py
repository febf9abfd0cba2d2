"""Objects from files: what is read, what stays, what is said."""
