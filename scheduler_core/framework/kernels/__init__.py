"""Compiled loops over the tables of a session: turns of gangs, places of tasks, admission."""
