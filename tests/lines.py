"""Lines that a test waits for, of processes that write to one pipe."""


def print_line(line: str) -> None:
    """Print by one write. Where Python does not buffer, `print` writes a text and the end of its line apart, and what
    another thread or process writes may come between them."""
    print(f"{line}\n", end="", flush=True)
