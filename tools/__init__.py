"""Programs for those who work on rota: none of them is in the wheel."""
