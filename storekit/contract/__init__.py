"""The promises of every store as tests. The author of a store gives a backend and inherits the tests:

    class TestMyStore(StoreContract):
        @pytest.fixture
        def backend(self) -> Backend:
            return MyBackend(...)        # empty, with a `skew` that moves its clock

No test sleeps; `backend.skew` moves the clock.
"""

import pytest

_PARTS = (
    "auditing",
    "calling_back",
    "controlling",
    "controlling_schedules",
    "claiming",
    "counting",
    "crowding",
    "deciding",
    "declaring",
    "declaring_schedules",
    "directing",
    "disabling",
    "editing",
    "expiring",
    "fanning",
    "filtering",
    "firing",
    "flowing",
    "forgetting",
    "freezing",
    "guarding",
    "handing",
    "hinting",
    "joining",
    "keeping",
    "leasing",
    "limiting",
    "marking",
    "naming",
    "naming_runs",
    "naming_limits",
    "needing",
    "noting",
    "offering",
    "pacing",
    "parking",
    "pausing",
    "planning",
    "putting",
    "queueing",
    "racing",
    "reading",
    "recording",
    "cooling_down",
    "settling",
    "sharing",
    "spanning",
    "suspecting",
    "waiting",
    "waking",
)
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))

from storekit.contract.auditing import AuditContract  # noqa: E402
from storekit.contract.calling_back import CallbackContract  # noqa: E402
from storekit.contract.claiming import ClaimContract  # noqa: E402
from storekit.contract.controlling import ControlContract  # noqa: E402 (assertions are rewritten on import)
from storekit.contract.controlling_schedules import ScheduleControlContract  # noqa: E402
from storekit.contract.cooling_down import CooldownContract, PendingContract  # noqa: E402
from storekit.contract.counting import DueCountContract, RollupContract, TotalContract  # noqa: E402
from storekit.contract.crowding import CrowdContract  # noqa: E402
from storekit.contract.deciding import DecisionContract, RowContract, ScheduleSweepContract  # noqa: E402
from storekit.contract.declaring import DeclareContract, ReportContract  # noqa: E402
from storekit.contract.declaring_schedules import ScheduleDeclareContract  # noqa: E402
from storekit.contract.directing import DirectContract  # noqa: E402
from storekit.contract.disabling import DisabledContract  # noqa: E402
from storekit.contract.editing import DeleteContract, EditContract  # noqa: E402
from storekit.contract.expiring import ExpiryContract  # noqa: E402
from storekit.contract.fanning import FanContract  # noqa: E402
from storekit.contract.filtering import FilterContract  # noqa: E402
from storekit.contract.firing import FireContract, FireGuardContract, MissedContract  # noqa: E402
from storekit.contract.flowing import FlowContract, GroupContract  # noqa: E402
from storekit.contract.forgetting import ForgetContract  # noqa: E402
from storekit.contract.freezing import FreezeContract  # noqa: E402
from storekit.contract.guarding import SupersedeContract, UniqueContract  # noqa: E402
from storekit.contract.handing import HandContract  # noqa: E402
from storekit.contract.hinting import HintContract  # noqa: E402
from storekit.contract.joining import (  # noqa: E402
    FreshStartContract,
    JoinedExpiryContract,
    JoinedPriorityContract,
    OwnNeedContract,
    StandBehindContract,
    TouchesContract,
)
from storekit.contract.keeping import SweepContract  # noqa: E402
from storekit.contract.leasing import LeaseContract  # noqa: E402
from storekit.contract.limiting import LimitChangeContract, LimitContract  # noqa: E402
from storekit.contract.marking import MarkContract  # noqa: E402
from storekit.contract.naming import NamingContract  # noqa: E402
from storekit.contract.naming_limits import NamedLimitContract  # noqa: E402
from storekit.contract.naming_runs import OwnIdContract  # noqa: E402
from storekit.contract.needing import BehindContract, NeedsContract  # noqa: E402
from storekit.contract.noting import NoteContract  # noqa: E402
from storekit.contract.offering import (  # noqa: E402
    ClaimAloneContract,
    OfferContract,
    ScheduleHintContract,
    ScheduleWakeContract,
)
from storekit.contract.overriding import OverrideContract  # noqa: E402
from storekit.contract.pacing import RateContract  # noqa: E402
from storekit.contract.parking import ParkContract  # noqa: E402
from storekit.contract.pausing import KeyPauseContract, PauseContract, PauseEndContract, TaskCommandContract  # noqa: E402
from storekit.contract.planning import PlanContract  # noqa: E402
from storekit.contract.putting import PutContract  # noqa: E402
from storekit.contract.queueing import QueueContract, QueueHintContract, QueueParkContract  # noqa: E402
from storekit.contract.racing import RaceContract  # noqa: E402
from storekit.contract.reading import ReadContract  # noqa: E402
from storekit.contract.recording import EventContract, EventMemoryContract  # noqa: E402
from storekit.contract.replacing import CountedScheduleContract, ReplaceContract  # noqa: E402
from storekit.contract.settling import SettleContract  # noqa: E402
from storekit.contract.sharing import ShareContract  # noqa: E402
from storekit.contract.spanning import SharedKeyContract, WindowContract  # noqa: E402
from storekit.contract.stage import Stage, new_run  # noqa: E402
from storekit.contract.suspecting import SuspectContract  # noqa: E402
from storekit.contract.terms import TermsContract  # noqa: E402
from storekit.contract.trying import TryContract  # noqa: E402
from storekit.contract.waiting import WaitingRunContract  # noqa: E402
from storekit.contract.waking import WakeContract  # noqa: E402

__all__ = ["Stage", "StoreContract", "new_run"]


class StoreContract(
    PutContract,
    TryContract,
    SupersedeContract,
    UniqueContract,
    FreshStartContract,
    JoinedExpiryContract,
    JoinedPriorityContract,
    OwnNeedContract,
    ReplaceContract,
    CountedScheduleContract,
    StandBehindContract,
    TouchesContract,
    DirectContract,
    DisabledContract,
    PendingContract,
    CooldownContract,
    ClaimContract,
    LimitChangeContract,
    LimitContract,
    ParkContract,
    RateContract,
    SuspectContract,
    LeaseContract,
    NoteContract,
    SettleContract,
    ControlContract,
    EditContract,
    DeleteContract,
    FanContract,
    AuditContract,
    FreezeContract,
    PauseContract,
    PauseEndContract,
    KeyPauseContract,
    TaskCommandContract,
    ExpiryContract,
    WakeContract,
    HandContract,
    HintContract,
    DeclareContract,
    ReportContract,
    TotalContract,
    DueCountContract,
    OverrideContract,
    RollupContract,
    ReadContract,
    FilterContract,
    NamingContract,
    OwnIdContract,
    NamedLimitContract,
    CallbackContract,
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
    ScheduleControlContract,
    ClaimAloneContract,
    TermsContract,
    OfferContract,
    ScheduleWakeContract,
    ScheduleHintContract,
    FireContract,
    FireGuardContract,
    MissedContract,
    DecisionContract,
    RowContract,
    ScheduleSweepContract,
    QueueContract,
    QueueParkContract,
    QueueHintContract,
    EventContract,
    EventMemoryContract,
    ShareContract,
    WindowContract,
    SharedKeyContract,
    CrowdContract,
):
    """The whole contract."""
