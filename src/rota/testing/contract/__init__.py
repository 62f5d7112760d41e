"""What every store promises, as tests. A store's author gives a backend and inherits the rest:

    class TestMyStore(StoreContract):
        @pytest.fixture
        def backend(self) -> Backend:
            return MyBackend(...)        # empty, and with a `skew` that moves its clock

No test sleeps; time passes by `backend.skew`.
"""

import pytest

_PARTS = ("asking", "claiming", "expiring", "hinting", "keeping", "leasing", "putting", "reading", "settling", "waking")
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))

from rota.testing.contract.asking import AskContract  # noqa: E402 (assertions are rewritten on import)
from rota.testing.contract.claiming import ClaimContract  # noqa: E402
from rota.testing.contract.expiring import ExpiryContract  # noqa: E402
from rota.testing.contract.hinting import HintContract  # noqa: E402
from rota.testing.contract.keeping import SweepContract  # noqa: E402
from rota.testing.contract.leasing import LeaseContract  # noqa: E402
from rota.testing.contract.putting import PutContract  # noqa: E402
from rota.testing.contract.reading import ReadContract  # noqa: E402
from rota.testing.contract.settling import SettleContract  # noqa: E402
from rota.testing.contract.stage import Stage, new_run  # noqa: E402
from rota.testing.contract.waking import WakeContract  # noqa: E402

__all__ = ["Stage", "StoreContract", "new_run"]


class StoreContract(
    PutContract,
    ClaimContract,
    LeaseContract,
    SettleContract,
    AskContract,
    ExpiryContract,
    WakeContract,
    HintContract,
    ReadContract,
    SweepContract,
):
    """The whole contract."""
