-- with: clock book events policies holds hints admit schedules audit
-- twin: rota/stores/ledger/admit.py
-- fire: advance each schedule and admit the runs of its tick, unless the schedule has changed since the tick was computed. A
-- refused run still advances the schedule. Answers the time, then for each tick 0, or 1 with run and reason of each run.
local ticks = cmsgpack.unpack(ARGV[3])

-- Add a firing to `recent`. `run` is given only if the tick's run joined another run or was refused for it: the id of the
-- tick's own run follows from the nominal time.
local function remember(recent, nominal, reason, run)
  recent[#recent + 1] = { nominal, reason, run }
  if #recent > FIRINGS_KEPT then table.remove(recent, 1) end
end

-- Record that `schedule` has fired, and what became of the last nominal time of `tick`.
local function record_fired(schedule, tick, reasons)
  local reason = reasons[#reasons] or (tick[T_MISSED] and tick[T_REASON])
  events.record("fired", "schedules", schedule[SCHED_ID], schedule[SCHED_TASK], schedule[SCHED_KEY], false, reason)
end

local function fire(tick)
  local schedule = schedules.schedule_of(tick[T_SCHEDULE])
  if not schedule or schedule[SCHED_PAUSED] or schedule[SCHED_VERSION] ~= tick[T_VERSION] then return { 0 } end
  if schedule[SCHED_NEXT_AT] ~= (tick[T_NEXT_AT] or false) then return { 0 } end
  local fired, recent = { 1 }, schedule[SCHED_RECENT] or {}
  if tick[T_MISSED] then remember(recent, tick[T_LAST_MISSED], tick[T_REASON]) end
  local ids, reasons = admit.admit_all(tick[T_RUNS])
  local made = 0
  for i, id in ipairs(ids) do
    remember(recent, tick[T_NOMINALS][i], reasons[i], id ~= tick[T_RUNS][i][I_ID] and id or nil)
    fired[#fired + 1] = id
    fired[#fired + 1] = reasons[i]
    if reasons[i] == "accepted" then made = made + 1 end
  end
  schedule[SCHED_NEXT_AT], schedule[SCHED_FIRES_AT] = tick[T_THEN] or false, tick[T_FIRES_AT] or false
  if tick[T_LEFT] then
    schedule[SCHED_MADE] = schedule[SCHED_MADE] + made
    if made >= tick[T_LEFT] then schedule[SCHED_NEXT_AT], schedule[SCHED_FIRES_AT] = false, false end
  end
  schedule[SCHED_RECENT] = #recent > 0 and recent
  if tick[T_NOTE] then schedule[SCHED_NOTE] = tick[T_NOTE] ~= "" and tick[T_NOTE] end
  schedules.put_schedule(schedule)
  record_fired(schedule, tick, reasons)
  if tick[T_MISSED] then
    policies.count_decision(schedule[SCHED_TASK], schedule[SCHED_KEY], tick[T_REASON], tick[T_MISSED], false, tick[T_WORDS])
  end
  return fired
end

local ids, total, soonest, applied = {}, 0, nil, 0
for i, tick in ipairs(ticks) do
  ids[i] = tick[T_SCHEDULE]
  total = total + #tick[T_RUNS]
end
schedules.load_schedules(ids)
admit.reserve(total)
local answer = { instant(now) }
for i, tick in ipairs(ticks) do
  local fired = fire(tick)
  answer[i + 1] = fired
  applied = applied + fired[1]
  if fired[1] == 1 and tick[T_FIRES_AT] and (not soonest or tick[T_FIRES_AT] < soonest) then soonest = tick[T_FIRES_AT] end
end
audit.keep(ARGV[4], { answer[1], applied })
if soonest then book.arrive(false, soonest) end -- one worker fires all schedules that are due next
hints.conclude()
return answer
