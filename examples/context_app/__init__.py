"""A context service: work that follows the activity of each user, and work for everybody from time to time."""
