"""A small site that the tests serve with real servers."""
