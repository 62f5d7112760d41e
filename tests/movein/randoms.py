"""Random cron fields, the same for the same seed."""

from random import Random

ZONES = ("Europe/Paris", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "UTC")


def number(chance: Random, low: int, high: int) -> int:
    return chance.randint(low, high)


def field(chance: Random, low: int, high: int, kinds: str = "nrlsRS*") -> str:
    """One field: n number, r range, l list, s range with step, S star with step, R several ranges, * star."""
    first, second = sorted(number(chance, low, high) for _ in range(2))
    step = number(chance, 2, max(2, (high - low) // 3))
    match chance.choice(kinds):
        case "r":
            return f"{first}-{second}"
        case "l":
            return ",".join(str(n) for n in sorted({number(chance, low, high) for _ in range(3)}))
        case "s" if first < second:  # cronsim, which judges too, takes 7-7/2 for 7/2
            return f"{first}-{second}/{min(step, second - first)}"
        case "n" | "s":
            return str(first)
        case "S":
            return f"*/{step}"
        case "R":
            return f"{field(chance, low, high, 'nr')},{field(chance, low, high, 'nr')}"
        case _:
            return "*"


def expression(chance: Random) -> str:
    """Five fields that do not fire all the time."""
    minute = field(chance, 0, 59, "nnnlS")
    hour = field(chance, 0, 23, "nnrlsS*")
    day = field(chance, 1, 31, "****nrls")
    month = field(chance, 1, 12, "****nrl")
    weekday = field(chance, 0, 6, "****nrl")
    return f"{minute} {hour} {day} {month} {weekday}"
