"""Where handlers run: async functions on the loop, plain ones in threads."""
