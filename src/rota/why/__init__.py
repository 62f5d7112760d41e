"""Why did it not run? An answer in words about a task, a key of a task, a schedule or a run."""

from rota.why.answer import Fact, Why
from rota.why.explain import why

__all__ = ["Fact", "Why", "why"]
