"""Immutable values that go into and come out of a session."""
