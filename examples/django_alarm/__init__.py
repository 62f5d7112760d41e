"""A Django site whose web process also cleans up, on time and once."""
