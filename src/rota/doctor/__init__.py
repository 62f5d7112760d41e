"""Checks of the program, its store and its settings: what could be wrong, and what to do about it."""
