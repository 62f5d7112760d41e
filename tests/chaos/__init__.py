"""Chaos: workers and submitters under random faults, a history of what happened, and a checker of every promise.

make chaos STORE=sqlite|redis|postgres SECONDS=150 SEED=11
"""
