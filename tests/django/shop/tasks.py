"""The tasks of the shop."""
