"""The port between the engine and the stores: the verbs that every store has, and the values that they take and answer.

Start with `rota.store.port.Store`. The contract suite in `storekit` holds every store to it. Code that calls `Client`
imports the values that its verbs take from here, too.
"""

from rota.domain.edits import RunEdit as RunEdit
from rota.domain.run import Lease as Lease
from rota.domain.run import NewRun as NewRun
from rota.domain.schedule import Tick as Tick
from rota.domain.settlement import Settlement as Settlement
from rota.domain.settlement import Verdict as Verdict
from rota.domain.spec import TaskSpec as TaskSpec
from rota.domain.tuning import Retention as Retention
from rota.store.claims import DUE_SCHEDULES as DUE_SCHEDULES
from rota.store.claims import IDLE_MEMORY as IDLE_MEMORY
from rota.store.claims import OFFER_AGAIN as OFFER_AGAIN
from rota.store.claims import OFFERS as OFFERS
from rota.store.claims import Claim as Claim
from rota.store.claims import ClaimRequest as ClaimRequest
from rota.store.claims import Renewal as Renewal
from rota.store.events import EVENT_MEMORY as EVENT_MEMORY
from rota.store.events import EVENTS_KEPT as EVENTS_KEPT
from rota.store.events import SUBSCRIBED as SUBSCRIBED
from rota.store.events import EventPage as EventPage
from rota.store.events import EventQuery as EventQuery
from rota.store.events import event_number as event_number
from rota.store.optional import Handed as Handed
from rota.store.optional import HandsOver as HandsOver
from rota.store.optional import SubmitsWithin as SubmitsWithin
from rota.store.port import Backend as Backend
from rota.store.port import Reads as Reads
from rota.store.port import Store as Store
from rota.store.queries import ALL_ROWS as ALL_ROWS
from rota.store.queries import INSTANTS as INSTANTS
from rota.store.queries import Count as Count
from rota.store.queries import Instant as Instant
from rota.store.queries import Page as Page
from rota.store.queries import Position as Position
from rota.store.queries import RowQuery as RowQuery
from rota.store.queries import RunQuery as RunQuery
from rota.store.queries import after_cursor as after_cursor
from rota.store.queries import matches as matches
from rota.store.reports import ENDINGS as ENDINGS
from rota.store.reports import MOST_SEATS as MOST_SEATS
from rota.store.reports import TOTAL as TOTAL
from rota.store.reports import Orders as Orders
from rota.store.reports import Report as Report
from rota.store.reports import Stat as Stat
from rota.store.reports import Tally as Tally
from rota.store.reports import WorkerSeen as WorkerSeen
from rota.store.reports import bucket as bucket
from rota.store.reports import bucket_seconds as bucket_seconds
from rota.store.reports import microseconds as microseconds
from rota.store.values import ID_MEMORY as ID_MEMORY
from rota.store.values import OWN_ID_MEMORY as OWN_ID_MEMORY
from rota.store.values import RETRY_WINDOW as RETRY_WINDOW
from rota.store.values import Command as Command
from rota.store.values import Declared as Declared
from rota.store.values import Depth as Depth
from rota.store.values import Edited as Edited
from rota.store.values import Fired as Fired
from rota.store.values import Hint as Hint
from rota.store.values import MarkRow as MarkRow
from rota.store.values import Plan as Plan
from rota.store.values import Reply as Reply
from rota.store.values import Scope as Scope
from rota.store.values import Swept as Swept
