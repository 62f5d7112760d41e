"""How commands write: tables, TSV, JSON, and text that is safe on a terminal."""
