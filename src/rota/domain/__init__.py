"""The rules of rota, free of I/O: values in, values out; no clock, no loop, no log."""
