"""The app that keeps events of an alarm, and forgets them."""
