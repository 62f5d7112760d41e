"""`rota runs`, `submit`, `watch` and `why`."""
