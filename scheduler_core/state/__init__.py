"""Mutable tables of one session, structure of arrays."""
