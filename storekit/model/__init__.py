"""The model: the rules of a store written a second time, without code of the stores. Tests compare a store with it.

Every verb is a function over the model's `Book`, in a module with the name of the ledger's module for that verb. Before
a verb, `book.now` is set to the time in the store's reply. The model does not park runs: parking must not be visible.
"""
