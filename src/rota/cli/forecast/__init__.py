"""`rota preview` and `cron`."""
