"""What commands share: the headings of the help, and parameters that users do not type."""

from typing import Annotated, TypeVar

from cyclopts import Group, Parameter

T = TypeVar("T")

Shared = Annotated[T, Parameter(parse=False)]
"""Made once from the global options, and passed to each command that has the parameter."""

Flag = Parameter(negative="", show_default=False)
"""An option without a value."""

Yes = Annotated[bool, Flag, Parameter(name=("--yes", "-y"), help="Do not ask.")]
OnlyTask = Annotated[str | None, Parameter(help="Only of this task.")]
TaskName = Annotated[str, Parameter(help="The task's name.")]

More = Annotated[str, Parameter(help="More of them.")]
"""Each value after the first."""

WORK = Group("Run work", sort_key=1)
LOOK = Group("Look and steer", sort_key=2)
CARE = Group("Take care", sort_key=3)
EVERYWHERE = Group("Everywhere", sort_key=4)
