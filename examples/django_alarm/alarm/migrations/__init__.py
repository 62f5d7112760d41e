"""The migrations of the alarm."""
