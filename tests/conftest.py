"""How hard hypothesis looks: modestly by default, long under `-m soak`; and the fixtures that start servers."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.server_fixtures", "tests.postgres_schemas"]

settings.register_profile("rota", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rota")
