"""For those who test: the contract that every store keeps, and a model that stores are compared with.

There are also real servers, `rota.testing.servers`, and a proxy that loses replies, `rota.testing.proxy`.

They are imported by name: `rota.testing.contract` needs pytest and pytest-asyncio,
`rota.testing.comparison` needs hypothesis.
"""
