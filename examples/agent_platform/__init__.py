"""A platform of agents whose tasks are called over HTTP, at the times that their users set."""
