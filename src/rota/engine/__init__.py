"""The engine: claims runs, calls their handlers, and records what came of it. It knows the port and the domain only."""
