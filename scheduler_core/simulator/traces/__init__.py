"""Readers of published traces, one file each; a broken line is an error with its file and number."""
