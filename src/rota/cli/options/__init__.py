"""What commands take: the app and the store, names, arguments, durations, instants."""
