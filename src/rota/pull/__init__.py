"""Pull workers: programs that claim, renew and settle runs themselves, over a store or over HTTP."""
