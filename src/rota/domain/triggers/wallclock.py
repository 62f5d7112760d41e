"""A cron expression as a set of wall-clock readings without a zone: seconds since 1970-01-01 00:00 on that clock."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache

from rota.domain.triggers.cron_fields import CronFields, bits, read_cron
from rota.domain.triggers.monthdays import MonthDays, month_days

DAY = 86_400
WHOLE_DAY = (1 << DAY) - 1


@dataclass(frozen=True, slots=True)
class WallClock:
    """The readings that match. `on_or_after` and `on_or_before` find the day first, then the time of day."""

    fields: CronFields
    days: MonthDays
    minutes: tuple[int, ...]
    """Minutes of the day."""
    seconds: tuple[int, ...]

    def on_or_after(self, reading: int) -> int | None:
        days, minutes, seconds = self.days, self.minutes, self.seconds
        today, second = divmod(reading, DAY)
        day = today if days.every_day else days.on_or_after(today)
        if day == today:
            minute, second = divmod(second, 60)
            at = bisect_left(minutes, minute)
            if at < len(minutes):
                if minutes[at] != minute:
                    return today * DAY + minutes[at] * 60 + seconds[0]
                if second <= seconds[-1]:
                    return reading - second + seconds[bisect_left(seconds, second)]
                if at + 1 < len(minutes):
                    return today * DAY + minutes[at + 1] * 60 + seconds[0]
            day = days.on_or_after(today + 1)
        return None if day is None else day * DAY + minutes[0] * 60 + seconds[0]

    def on_or_before(self, reading: int) -> int | None:
        days, minutes, seconds = self.days, self.minutes, self.seconds
        today, second = divmod(reading, DAY)
        day = today if days.every_day else days.on_or_before(today)
        if day == today:
            minute, second = divmod(second, 60)
            at = bisect_right(minutes, minute) - 1
            if at >= 0:
                if minutes[at] != minute:
                    return today * DAY + minutes[at] * 60 + seconds[-1]
                if second >= seconds[0]:
                    return reading - second + seconds[bisect_right(seconds, second) - 1]
                if at > 0:
                    return today * DAY + minutes[at - 1] * 60 + seconds[-1]
            day = days.on_or_before(today - 1)
        return None if day is None else day * DAY + minutes[-1] * 60 + seconds[-1]

    def bits(self, low: int, high: int) -> int:
        """Return the matching readings from `low` to before `high` as a bit set; bit 0 is the reading `low`."""
        found = 0
        for day in range(low // DAY, -(-high // DAY)):
            if self.days.every_day or self.days.on_or_after(day) == day:
                shift = day * DAY - low
                times = _seconds_of_day(self.minutes, self.seconds)
                found |= times << shift if shift >= 0 else times >> -shift
        return found & (WHOLE_DAY if high - low == DAY else (1 << max(0, high - low)) - 1)


@lru_cache(maxsize=4096)
def wall_clock(expr: str, week: str = "", year: str = "") -> WallClock:
    """Return the readings of an expression; schedules with the same expression share them."""
    fields = read_cron(expr, week, year)
    try:
        days = month_days(fields)
    except ValueError as error:
        raise ValueError(f"cron {expr!r}: {error}") from None
    return WallClock(
        fields=fields,
        days=days,
        minutes=_minutes_of_day(fields.hours, fields.minutes),
        seconds=bits(fields.seconds),
    )


@lru_cache(maxsize=1024)
def _minutes_of_day(hours: int, minutes: int) -> tuple[int, ...]:
    return tuple(hour * 60 + minute for hour in bits(hours) for minute in bits(minutes))


@lru_cache(maxsize=64)
def _seconds_of_day(minutes: tuple[int, ...], seconds: tuple[int, ...]) -> int:
    """Return the times of a day as a bit set."""
    minute = sum(1 << second for second in seconds)
    times = bytearray(DAY // 8 + 8)
    for at in minutes:
        first = at * 60
        part = int.from_bytes(times[first // 8 : first // 8 + 9], "little") | minute << first % 8
        times[first // 8 : first // 8 + 9] = part.to_bytes(9, "little")
    return int.from_bytes(times, "little")
