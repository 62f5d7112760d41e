"""The rules of rota as pure functions over values: no I/O, no clock, no event loop, no log."""
