-- with: clock book events policies holds hints schedules audit
-- twin: rota/stores/ledger/declare.py
-- declare: write the tasks and schedules of the code. The last declaration wins, a pause stays, and nothing is removed but
-- what the terms say.
local function declare_task(task, spec)
  local before = policies.declared(task)
  spec[S_PAUSED], spec[S_PAUSED_KEYS] = before and before[S_PAUSED], before and before[S_PAUSED_KEYS] or false
  spec[S_PAUSED_UNTIL] = before and before[S_PAUSED_UNTIL] or false
  if before and before[S_TEXT] == spec[S_TEXT] then return "unchanged" end
  local was = policies.spec_of(task) -- what an operator says may hide the change
  policies.put_spec(task, spec)
  for i = 1, #(spec[S_LIMITS] or {}), 2 do call("SADD", ROOT .. "limited:" .. spec[S_LIMITS][i], task) end
  if not before then return "added" end
  local is = policies.spec_of(task)
  local regated = spec[S_LIMIT] ~= before[S_LIMIT] or is[S_RATE] ~= was[S_RATE]
  -- a time at which the old rate opens may be days away
  if is[S_RATE] ~= was[S_RATE] then policies.forget_rates(task) end
  if regated then holds.unpark_all(task) end
  if regated or (is[S_ENABLED] and not was[S_ENABLED]) then holds.announce(task) end
  return "changed"
end

local function declare_schedule(schedule)
  local before = schedules.schedule_of(schedule[SCHED_ID])
  if before and before[SCHED_OWNER] ~= schedule[SCHED_OWNER] then return "taken" end
  if not before then -- a schedule with a version comes from another store and keeps its state
    if schedule[SCHED_VERSION] == 0 then schedule[SCHED_VERSION], schedule[SCHED_SINCE] = 1, now end
  else
    if before[SCHED_TEXT] == schedule[SCHED_TEXT] then return "unchanged" end
    if before[SCHED_TIMES] ~= schedule[SCHED_TIMES] then
      schedule[SCHED_SINCE], schedule[SCHED_MADE] = now, 0
    else
      schedule[SCHED_MADE] = before[SCHED_MADE]
      schedule[SCHED_ANCHOR], schedule[SCHED_SINCE] = before[SCHED_ANCHOR], before[SCHED_SINCE]
      schedule[SCHED_NEXT_AT], schedule[SCHED_FIRES_AT] = before[SCHED_NEXT_AT], before[SCHED_FIRES_AT]
    end
    schedule[SCHED_VERSION], schedule[SCHED_PAUSED] = before[SCHED_VERSION] + 1, before[SCHED_PAUSED]
    schedule[SCHED_NOTE], schedule[SCHED_RECENT] = before[SCHED_NOTE], before[SCHED_RECENT]
  end
  schedules.put_schedule(schedule)
  if schedule[SCHED_FIRES_AT] and not schedule[SCHED_PAUSED] then book.arrive(false, schedule[SCHED_FIRES_AT]) end
  return before and "changed" or "added"
end

-- The answer of a declaration that changes nothing, because it was carried out before or its terms do not hold; nothing if
-- it is to be carried out.
local function refused_terms(items, versions, drop)
  local done, taken, held = true, false, true
  for _, item in ipairs(items) do
    local before = schedules.schedule_of(item[2])
    done = done and before and before[SCHED_TEXT] == item[3][SCHED_TEXT] and before[SCHED_OWNER] == item[3][SCHED_OWNER]
    taken = taken or (before and before[SCHED_OWNER] ~= item[3][SCHED_OWNER])
  end
  for _, id in ipairs(drop) do done = done and not schedules.schedule_of(id) end
  for _, pair_of in ipairs(versions) do
    local before = schedules.schedule_of(pair_of[1])
    held = held and (before and before[SCHED_VERSION] or 0) == pair_of[2]
  end
  return (done and "unchanged") or (taken and "taken") or (not held and "conflict") or nil
end

local function drop_schedule(id)
  local before = schedules.schedule_of(id)
  if not before then return "unchanged" end
  schedules.drop_schedule(id)
  events.record("removed", "schedules", id, before[SCHED_TASK], before[SCHED_KEY])
  policies.count_decision(before[SCHED_TASK], before[SCHED_KEY], "dropped", 1)
  return "dropped"
end

local answer, items = { instant(now) }, cmsgpack.unpack(ARGV[3])
local given = ARGV[4] and cmsgpack.unpack(ARGV[4])
local terms = given or { {}, {} }
local refused = given and refused_terms(items, terms[1], terms[2])
for _, item in ipairs(items) do
  if item[1] == "limit" then -- a task has this named limit: its row is added if it is missing
    if not refused and not policies.declared(item[2]) then declare_task(item[2], item[3]) end
  else
    local task = item[1] == "task"
    local declared = refused or (task and declare_task(item[2], item[3])) or declare_schedule(item[3])
    if declared == "added" or declared == "changed" then
      local about = task and item[2] or item[3][SCHED_TASK]
      events.record("declared", item[1] .. "s", item[2], about, not task and item[3][SCHED_KEY], false, declared)
    end
    answer[#answer + 1] = declared
  end
end
for _, id in ipairs(terms[2]) do answer[#answer + 1] = refused or drop_schedule(id) end
audit.keep(ARGV[5], answer)
hints.conclude()
return answer
