"""The client side: submit, wait, read and act on a store, without an engine."""
