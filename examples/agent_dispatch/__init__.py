"""An agent behind a queue: requests are answered at once, the work is done later, and can be stopped on the way."""
