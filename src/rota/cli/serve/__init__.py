"""`rota serve` and `rota token`: rota over HTTP."""
