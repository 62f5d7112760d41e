"""`rota diff`, `sync`, `lint`, `settings`, `migrate` and `move`."""
