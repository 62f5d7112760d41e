"""Small apps that show rota at work. Each has a README and one command: `make example NAME=race_day`."""
