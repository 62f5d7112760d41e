-- with: clock book policies holds hints admit timetable
-- twin: rota/stores/ledger/admit.py
-- fire: advance a schedule and admit its runs, if it still stands where the tick was planned; a refused run still
-- advances. Answers the time, then for each tick 0, or 1 followed by run and reason of each of its runs.
local T_SCHEDULE, T_VERSION, T_NEXT, T_THEN, T_FIRES, T_NOMINALS, T_LAST_MISSED, T_MISSED, T_REASON, T_WORDS, T_RUNS =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
local ticks = cmsgpack.unpack(ARGV[3])

-- `run` is one that was there already: the id of a tick's own run follows from its nominal time.
local function remember(recent, nominal, reason, run)
  recent[#recent + 1] = { nominal, reason, run }
  if #recent > FIRINGS_KEPT then table.remove(recent, 1) end
end

local function fire(tick)
  local schedule = timetable.schedule_of(tick[T_SCHEDULE])
  if not schedule or schedule[P_PAUSED] or schedule[P_VERSION] ~= tick[T_VERSION] or schedule[P_NEXT] ~= (tick[T_NEXT] or false) then
    return { 0 }
  end
  local fired, recent = { 1 }, schedule[P_RECENT] or {}
  if tick[T_MISSED] then remember(recent, tick[T_LAST_MISSED], tick[T_REASON]) end
  for i, item in ipairs(tick[T_RUNS]) do
    local run, reason = admit.admit_or_refuse(item)
    remember(recent, tick[T_NOMINALS][i], reason, run ~= item[I_ID] and run or nil)
    fired[#fired + 1] = run
    fired[#fired + 1] = reason
  end
  schedule[P_NEXT], schedule[P_FIRES], schedule[P_RECENT] = tick[T_THEN] or false, tick[T_FIRES] or false, #recent > 0 and recent
  timetable.put_schedule(schedule)
  if tick[T_MISSED] then
    policies.count_decision(schedule[P_TASK], schedule[P_KEY], tick[T_REASON], tick[T_MISSED], false, tick[T_WORDS])
  end
  return fired
end

local ids, total, soonest = {}, 0, nil
for i, tick in ipairs(ticks) do
  ids[i] = tick[T_SCHEDULE]
  total = total + #tick[T_RUNS]
end
timetable.load_schedules(ids)
admit.reserve(total)
local answer = { instant(now) }
for i, tick in ipairs(ticks) do
  local fired = fire(tick)
  answer[i + 1] = fired
  if fired[1] == 1 and tick[T_FIRES] and (not soonest or tick[T_FIRES] < soonest) then soonest = tick[T_FIRES] end
end
if soonest then book.arrive(false, soonest) end -- one worker looks after all that are due next
hints.conclude()
return answer
