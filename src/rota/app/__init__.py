"""The app: the registry of its tasks, flows and schedules, and the life of its embedded engine."""
