"""Session, statement, extension points and the tier walk that combines plugins."""
