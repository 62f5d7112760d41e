"""For those who test: the contract that every store keeps, and a model that stores are compared with.

They are imported by name: `rota.testing.contract` needs pytest and pytest-asyncio,
`rota.testing.comparison` needs hypothesis.
"""
