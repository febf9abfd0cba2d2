"""What is published: wheels, a Debian package, images, and what belongs beside them (RELEASING.md)."""
