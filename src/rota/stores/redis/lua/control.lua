-- with: clock book events policies holds hints schedules forget audit
-- twin: rota/stores/ledger/control.py
-- control: a command about runs, tasks or schedules. Waiting runs change at once; the worker of a running run reads the
-- command in its lease when it renews.
local REASONS = { cancel = "cancelled", drop = "dropped", pause = "paused", resume = "resumed", delete = "deleted" }
local request = cmsgpack.unpack(ARGV[3])
local command, of, note, by, names, ends = request[1], request[2], request[3] or false, request[4], request[5], request[6]

-- Write the command into the lease of `run`; false if the lease has it already.
local function notify(run, cancel, pause)
  local lease = run.lease
  if lease[L_CANCEL] == cancel and lease[L_PAUSE] == pause and run[NOTE] == note then return false end
  lease[L_CANCEL], lease[L_PAUSE], run[NOTE] = cancel, pause, note
  book.hput(LEASES, run.id, cmsgpack.pack(lease))
  book.save(run)
  return true
end

local function pause(run)
  local state = run.state
  book.leave(run)
  run.state, run[NOTE] = "p", note
  book.enter(run)
  book.save(run)
  holds.freed(run, state, run[DUE_AT])
end

local function resume(run)
  book.leave(run)
  run.state, run[NOTE] = book.queued_state(run, false), note
  book.enter(run)
  book.save(run)
  book.arrive_run(run)
end

-- Carry out the command; return whether it changed `run`.
local function carry_out(run)
  local running, paused, lease = run.state == "r", run.state == "p", run.lease
  if book.is_final(run) then return false end
  if command == "cancel" and running then return notify(run, true, false) end
  if command == "drop" and running then return false end
  if command == "cancel" or command == "drop" then
    holds.end_waiting({ run }, REASONS[command], note)
  elseif command == "pause" then
    if running then return not lease[L_CANCEL] and notify(run, false, true) end
    if paused then return false end
    pause(run)
  else
    if running then return lease[L_PAUSE] and notify(run, false, false) end
    if not paused then return false end
    resume(run)
  end
  return true
end

-- Record what the command made of `run`. holds.end_waiting has recorded the end of a run that waited.
local function record_controlled(run)
  if book.is_final(run) then return end
  local name = REASONS[command]
  if run.state == "r" and command ~= "resume" then name = command .. "_requested" end
  events.record_run(name, run, REASONS[command])
end

local function control_run(id)
  local run = book.get(id)
  if not run then return 0 end
  if not carry_out(run) then return (command == "cancel" and not book.is_final(run)) and 1 or 0 end -- a repeated cancel
  touched[id] = true
  record_controlled(run)
  policies.count_decision(run[TASK], run[KEY], REASONS[command], 1, id, note, by)
  return 1
end

-- Forget an ended run. A put of the run that is sent again within ID_MEMORY must still find it.
local function delete_run(id)
  local run = book.get(id)
  if not run or not book.is_final(run) or run[FINISHED_AT] > now - ID_MEMORY then return 0 end
  forget.runs(ROOT .. (run.state == "s" and "ended:" or "failed:") .. run[TASK], { book.place(run[SEQ]) })
  runs[id] = false
  touched[id] = true
  events.record("deleted", "runs", id, run[TASK], run[KEY], false, "deleted")
  policies.count_decision(run[TASK], run[KEY], "deleted", 1, id, note, by)
  return 1
end

local function nothing() return 0 end

local function waiting_of(task)
  local ids, places = {}, {}
  for _, lane in ipairs(call("ZRANGE", HEADS, 0, -1)) do
    if lane:match("^%-?%d+!?:([^%z]*)") == task and #places < DROPPED_AT_ONCE then
      for _, at in ipairs(call("ZRANGE", ROOT .. "q:" .. lane, 0, DROPPED_AT_ONCE - #places - 1)) do
        places[#places + 1] = at
      end
    end
  end
  for _, name in ipairs(holds.parked_names(task)) do
    for _, key in ipairs(call("ZRANGE", ROOT .. "keys:" .. name, 0, DROPPED_AT_ONCE)) do
      if #places >= DROPPED_AT_ONCE then break end
      for _, at in ipairs(call("ZRANGE", book.parked_key(name, key), 0, DROPPED_AT_ONCE - #places - 1)) do
        places[#places + 1] = at:sub(-12)
      end
    end
  end
  for _, id in pairs(book.ids_of(places)) do ids[#ids + 1] = id end
  if #ids < DROPPED_AT_ONCE then
    for _, id in ipairs(call("ZRANGE", ROOT .. "held:" .. task, 0, DROPPED_AT_ONCE - #ids - 1)) do ids[#ids + 1] = id end
  end
  return ids
end

-- End the waiting runs of `task`, a bounded number.
local function drop(task)
  book.write_all()
  local ids, waiting = waiting_of(task), {}
  book.load(ids)
  for i, id in ipairs(ids) do waiting[i] = runs[id] end
  holds.end_waiting(waiting, "dropped", note)
  return #ids
end

-- `item` has the task, and the spec that it gets if nobody has declared it.
local function control_task(item)
  local task, changes = item[1], 0
  if command == "cancel" or command == "drop" then
    changes = drop(task)
  else
    local spec = policies.declared(task) or item[2]
    local pausing = command == "pause"
    if policies.is_paused(spec) == pausing and (not pausing or (spec[S_PAUSED_UNTIL] or false) == ends) then return 0 end
    if pausing and ends and ends <= now then return 0 end
    spec[S_PAUSED], spec[S_PAUSED_UNTIL], changes = pausing, pausing and ends, 1
    policies.put_spec(task, spec)
    events.record(REASONS[command], "tasks", task, task)
    if command == "resume" then holds.announce(task) end
  end
  if changes > 0 then policies.count_decision(task, false, REASONS[command], changes, false, note, by) end
  return changes
end

-- Pause or resume a key of a task; `item` is as in control_task, with the key. A claim parks the due runs of a paused key.
local function control_key(item)
  local task, key, pausing, kept, known = item[1], item[3], command == "pause", {}, false
  local spec = policies.declared(task) or item[2]
  for _, each in ipairs(spec[S_PAUSED_KEYS] or {}) do
    if each == key then known = true else kept[#kept + 1] = each end
  end
  if (command ~= "pause" and command ~= "resume") or known == pausing then return 0 end
  if pausing and #kept >= PAUSED_KEYS then return 0 end
  if pausing then kept[#kept + 1] = key end
  spec[S_PAUSED_KEYS] = #kept > 0 and kept
  policies.put_spec(task, spec)
  events.record(REASONS[command], "tasks", task, task, key)
  policies.count_decision(task, key, REASONS[command], 1, false, note, by)
  if not pausing then
    holds.unpark_all(task)
    holds.announce(task)
  end
  return 1
end

local function control_schedule(id)
  local schedule = schedules.schedule_of(id)
  if not schedule then return 0 end
  if command == "cancel" or command == "drop" then
    schedules.drop_schedule(id)
  else
    if schedule[SCHED_PAUSED] == (command == "pause") then return 0 end
    schedule[SCHED_PAUSED], schedule[SCHED_NOTE], schedule[SCHED_VERSION] = command == "pause", note, schedule[SCHED_VERSION] + 1
    if command == "resume" then schedule[SCHED_SINCE] = now end -- ticks of the time of the pause are not fired
    schedules.put_schedule(schedule)
    if command == "resume" and schedule[SCHED_FIRES_AT] then book.arrive(false, schedule[SCHED_FIRES_AT]) end
  end
  local name = (command == "cancel" or command == "drop") and "removed" or REASONS[command]
  events.record(name, "schedules", id, schedule[SCHED_TASK], schedule[SCHED_KEY])
  policies.count_decision(schedule[SCHED_TASK], schedule[SCHED_KEY], REASONS[command], 1, false, note, by)
  return 1
end

local control = { runs = control_run, tasks = control_task, schedules = control_schedule, keys = control_key }
if command == "delete" then control = { runs = delete_run, tasks = nothing, schedules = nothing, keys = nothing } end
local answer = { instant(now) }
if of == "runs" then book.load(names) end
for i, name in ipairs(names) do answer[i + 1] = control[of](name) end
audit.keep(ARGV[4], answer)
hints.conclude()
return answer
