-- with: clock book policies holds hints timetable
-- twin: rota/stores/ledger/control.py
-- declare: what code says of tasks and schedules. The last publish wins, a pause stays, nothing is ever removed.
local function forget_rates(task)
  local name = ROOT .. "rate:" .. task
  for _, key in ipairs(call("ZRANGE", name, 0, -1)) do book.zput(OPENINGS, pair(task, key), false) end
  call("DEL", name)
end

local function declare_task(task, spec)
  local before = policies.spec_of(task)
  spec[S_PAUSED] = before and before[S_PAUSED]
  if before and before[S_TEXT] == spec[S_TEXT] then return "unchanged" end
  specs[task] = spec
  book.hput(SPECS, task, cmsgpack.pack(spec))
  if not before then return "added" end
  local regated = spec[S_LIMIT] ~= before[S_LIMIT] or spec[S_RATE] ~= before[S_RATE]
  -- tokens of the old rate would hold up the new one, perhaps for days
  if spec[S_RATE] ~= before[S_RATE] then forget_rates(task) end
  if regated then holds.unpark_all(task) end
  if regated or (spec[S_ENABLED] and not before[S_ENABLED]) then
    holds.announce(task)
  end
  return "changed"
end

local function declare_schedule(schedule)
  local before = timetable.schedule_of(schedule[P_ID])
  if before and before[P_OWNER] ~= schedule[P_OWNER] then return "taken" end
  if not before then -- with a version it comes from another store, and stands where it stood there
    if schedule[P_VERSION] == 0 then schedule[P_VERSION], schedule[P_SINCE] = 1, now end
  else
    if before[P_TEXT] == schedule[P_TEXT] then return "unchanged" end
    if before[P_TIMES] ~= schedule[P_TIMES] then
      schedule[P_SINCE] = now
    else
      schedule[P_ANCHOR], schedule[P_NEXT], schedule[P_FIRES] = before[P_ANCHOR], before[P_NEXT], before[P_FIRES]
      schedule[P_SINCE] = before[P_SINCE]
    end
    schedule[P_VERSION], schedule[P_PAUSED] = before[P_VERSION] + 1, before[P_PAUSED]
    schedule[P_NOTE], schedule[P_RECENT] = before[P_NOTE], before[P_RECENT]
  end
  timetable.put_schedule(schedule)
  if schedule[P_FIRES] and not schedule[P_PAUSED] then book.arrive(false, schedule[P_FIRES]) end
  return before and "changed" or "added"
end

local answer = { instant(now) }
for i, item in ipairs(cmsgpack.unpack(ARGV[3])) do
  answer[i + 1] = item[1] == "task" and declare_task(item[2], item[3]) or declare_schedule(item[3])
end
hints.conclude()
return answer
