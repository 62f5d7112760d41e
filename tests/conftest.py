"""How hard hypothesis looks: modestly by default, long under `-m soak`; and the fixtures that start servers."""

import os
import signal
import time

from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell: children would not hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["TZ"] = "UTC"  # people are told local time: whose it is must not depend on the machine
time.tzset()

pytest_plugins = ["tests.server_fixtures", "tests.postgres_schemas"]

settings.register_profile("rota", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rota")
