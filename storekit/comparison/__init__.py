"""Compares a store with the model: random stories must give the same answers and the same runs after every step.

    async def test_my_store_agrees_with_the_model():
        await search(my_backend, seed=1, stories=100)

`my_backend` returns the backend of a new and empty store.
"""

from storekit.comparison.searching import Disagreement, Make, play, search, search_for

__all__ = ["Disagreement", "Make", "play", "search", "search_for"]
