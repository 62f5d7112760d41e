"""Sites of FastAPI and Flask that the tests of the servers serve."""
