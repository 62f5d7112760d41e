"""How hard hypothesis looks: modestly by default, long under `-m soak`."""

from hypothesis import HealthCheck, settings

settings.register_profile("rota", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rota")
