"""`rota mcp`: rota for assistants, over the Model Context Protocol."""
