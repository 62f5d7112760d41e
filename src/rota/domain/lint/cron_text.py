"""A cron expression as it was written, field by field. Two expressions of the same times may need different
findings."""

from msgspec import Struct

from rota.domain.triggers.cron import Cron
from rota.domain.triggers.cron_fields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, Field, split_cron
from rota.domain.triggers.wallclock import WallClock, wall_clock

FIELDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


class CronText(Struct, frozen=True):
    """The texts of the six fields. Without `with_seconds`, the author wrote five."""

    texts: list[str]
    with_seconds: bool
    clock: WallClock

    def of(self, field: Field) -> str:
        return self.texts[FIELDS.index(field)]

    def items(self, field: Field) -> list[str]:
        return self.of(field).split(",")

    def line(self, **changed: str) -> str:
        """Return the expression with other texts in the named fields."""
        texts = [changed.get(field.name, self.of(field)) for field in FIELDS]
        return " ".join(texts if self.with_seconds else texts[1:])


def cron_text(cron: Cron) -> CronText:
    texts = split_cron(cron.expr)
    with_seconds = len(texts) == 6
    return CronText(texts if with_seconds else ["0", *texts], with_seconds, wall_clock(cron.expr, cron.week, cron.year))
