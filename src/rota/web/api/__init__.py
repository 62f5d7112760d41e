"""What the routes do, one module per noun."""
