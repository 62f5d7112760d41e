"""The rules of a store a second time, on purpose, sharing no code with the stores: a store is compared with the model.

Every verb is a function of the model's `Book` in the module that has the name of the ledger's module for the same verb.
Before a verb, `book.now` is set to the time that the store answered with. Parking is not modelled: it must not show.
"""
