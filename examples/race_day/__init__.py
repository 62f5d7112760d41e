"""A day at the races: twelve steps once a day, work around every race, and what goes wrong in between."""
