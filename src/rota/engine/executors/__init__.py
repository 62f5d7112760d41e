"""Where handlers run: async functions on the loop, plain ones in threads, what may crash or hang in a child."""
