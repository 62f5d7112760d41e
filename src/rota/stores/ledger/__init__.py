"""The rules of the verbs, written once over a Book: memory and SQLite keep the same ledger."""
