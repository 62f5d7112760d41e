"""A store beside the model: random stories, the same answers, and the same runs after every step.

    async def test_my_store_agrees_with_the_model():
        await search(my_backend, seed=1, stories=100)

`my_backend` makes the backend of a new and empty store.
"""

from storekit.comparison.searching import Disagreement, Make, search, search_for, tell

__all__ = ["Disagreement", "Make", "search", "search_for", "tell"]
