"""What every store promises, as tests. A store's author gives a backend and inherits the rest:

    class TestMyStore(StoreContract):
        @pytest.fixture
        def backend(self) -> Backend:
            return MyBackend(...)        # empty, and with a `skew` that moves its clock

No test sleeps; time passes by `backend.skew`.
"""

import pytest

_PARTS = (
    "asking",
    "asking_schedules",
    "claiming",
    "crowding",
    "deciding",
    "declaring",
    "declaring_schedules",
    "disabling",
    "expiring",
    "firing",
    "flowing",
    "forgetting",
    "guarding",
    "handing",
    "hinting",
    "joining",
    "keeping",
    "leasing",
    "limiting",
    "marking",
    "naming",
    "needing",
    "noting",
    "offering",
    "pacing",
    "parking",
    "pausing",
    "planning",
    "putting",
    "racing",
    "reading",
    "resting",
    "settling",
    "suspecting",
    "waiting",
    "waking",
)
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))

from rota.testing.contract.asking import AskContract  # noqa: E402 (assertions are rewritten on import)
from rota.testing.contract.asking_schedules import ScheduleWishContract  # noqa: E402
from rota.testing.contract.claiming import ClaimContract  # noqa: E402
from rota.testing.contract.crowding import CrowdContract  # noqa: E402
from rota.testing.contract.deciding import DecisionContract, RowContract, ScheduleSweepContract  # noqa: E402
from rota.testing.contract.declaring import DeclareContract, ReportContract  # noqa: E402
from rota.testing.contract.declaring_schedules import ScheduleDeclareContract  # noqa: E402
from rota.testing.contract.disabling import DisabledContract  # noqa: E402
from rota.testing.contract.expiring import ExpiryContract  # noqa: E402
from rota.testing.contract.firing import FireContract, FireGuardContract, MissedContract  # noqa: E402
from rota.testing.contract.flowing import FlowContract, GroupContract  # noqa: E402
from rota.testing.contract.forgetting import ForgetContract  # noqa: E402
from rota.testing.contract.guarding import SupersedeContract, UniqueContract  # noqa: E402
from rota.testing.contract.handing import HandContract  # noqa: E402
from rota.testing.contract.hinting import HintContract  # noqa: E402
from rota.testing.contract.joining import (  # noqa: E402
    FreshStartContract,
    JoinedExpiryContract,
    JoinedPriorityContract,
    OwnNeedContract,
    StandBehindContract,
    TouchesContract,
)
from rota.testing.contract.keeping import SweepContract  # noqa: E402
from rota.testing.contract.leasing import LeaseContract  # noqa: E402
from rota.testing.contract.limiting import LimitChangeContract, LimitContract  # noqa: E402
from rota.testing.contract.marking import MarkContract  # noqa: E402
from rota.testing.contract.naming import NamingContract  # noqa: E402
from rota.testing.contract.needing import BehindContract, NeedsContract  # noqa: E402
from rota.testing.contract.noting import NoteContract  # noqa: E402
from rota.testing.contract.offering import (  # noqa: E402
    OfferContract,
    ScheduleHintContract,
    ScheduleWakeContract,
)
from rota.testing.contract.pacing import RateContract  # noqa: E402
from rota.testing.contract.parking import ParkContract  # noqa: E402
from rota.testing.contract.pausing import PauseContract, TaskWishContract  # noqa: E402
from rota.testing.contract.planning import PlanContract  # noqa: E402
from rota.testing.contract.putting import PutContract  # noqa: E402
from rota.testing.contract.racing import RaceContract  # noqa: E402
from rota.testing.contract.reading import ReadContract  # noqa: E402
from rota.testing.contract.resting import PendingContract, RestContract  # noqa: E402
from rota.testing.contract.settling import SettleContract  # noqa: E402
from rota.testing.contract.stage import Stage, new_run  # noqa: E402
from rota.testing.contract.suspecting import SuspectContract  # noqa: E402
from rota.testing.contract.waiting import WaitingRunContract  # noqa: E402
from rota.testing.contract.waking import WakeContract  # noqa: E402

__all__ = ["Stage", "StoreContract", "new_run"]


class StoreContract(
    PutContract,
    SupersedeContract,
    UniqueContract,
    FreshStartContract,
    JoinedExpiryContract,
    JoinedPriorityContract,
    OwnNeedContract,
    StandBehindContract,
    TouchesContract,
    DisabledContract,
    PendingContract,
    RestContract,
    ClaimContract,
    LimitChangeContract,
    LimitContract,
    ParkContract,
    RateContract,
    SuspectContract,
    LeaseContract,
    NoteContract,
    SettleContract,
    AskContract,
    PauseContract,
    TaskWishContract,
    ExpiryContract,
    WakeContract,
    HandContract,
    HintContract,
    DeclareContract,
    ReportContract,
    ReadContract,
    NamingContract,
    SweepContract,
    ForgetContract,
    BehindContract,
    MarkContract,
    NeedsContract,
    WaitingRunContract,
    FlowContract,
    GroupContract,
    PlanContract,
    RaceContract,
    ScheduleDeclareContract,
    ScheduleWishContract,
    OfferContract,
    ScheduleWakeContract,
    ScheduleHintContract,
    FireContract,
    FireGuardContract,
    MissedContract,
    DecisionContract,
    RowContract,
    ScheduleSweepContract,
    CrowdContract,
):
    """The whole contract."""
