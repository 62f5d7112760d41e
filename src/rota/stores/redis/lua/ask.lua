-- with: clock book policies holding hinting timetable
-- ask: a wish about runs, tasks or schedules. What waits changes at once, what runs is told through its lease.
local REASONS = { cancel = "cancelled", drop = "dropped", pause = "paused", resume = "resumed" }
local DROPPED_AT_ONCE, ANNOUNCED = 1000, 100
local request = cmsgpack.unpack(ARGV[3])
local wish, of, note, by, subjects = request[1], request[2], request[3] or false, request[4], request[5]

local function end_waiting(run)
  local state = run.state
  run[NOTE] = note
  book.finish(run, "c", wish == "cancel" and "cancelled" or "dropped")
  holding.release(run)
  holding.freed(run, state, run[DUE])
end

local function notify(run, cancel, pause)
  local lease = run.lease
  if lease[L_CANCEL] == cancel and lease[L_PAUSE] == pause and run[NOTE] == note then return false end
  lease[L_CANCEL], lease[L_PAUSE], run[NOTE] = cancel, pause, note
  book.hput(LEASES, run.id, cmsgpack.pack(lease))
  book.save(run)
  return true
end

local function hold(run)
  local state = run.state
  book.leave(run)
  run.state, run[NOTE] = "p", note
  book.enter(run)
  book.save(run)
  holding.freed(run, state, run[DUE])
end

local function let_go(run)
  book.leave(run)
  run.state, run[NOTE] = book.waits(run, false), note
  book.enter(run)
  book.save(run)
  book.arrive(run[TASK], run[DUE])
end

-- Whether the wish changes anything, and then does it.
local function granted(run)
  local running, paused, lease = run.state == "r", run.state == "p", run.lease
  if book.is_final(run) then return false end
  if wish == "cancel" and running then return notify(run, true, false) end
  if wish == "drop" and running then return false end
  if wish == "cancel" or wish == "drop" then
    end_waiting(run)
  elseif wish == "pause" then
    if running then return not lease[L_CANCEL] and notify(run, false, true) end
    if paused then return false end
    hold(run)
  else
    if running then return lease[L_PAUSE] and notify(run, false, false) end
    if not paused then return false end
    let_go(run)
  end
  return true
end

local function ask_run(id)
  local run = book.get(id)
  if not run then return 0 end
  if not granted(run) then return (wish == "cancel" and not book.is_final(run)) and 1 or 0 end -- told already
  touched[id] = true
  policies.decided(run[TASK], run[KEY], REASONS[wish], 1, id, note, by)
  return 1
end

local function waiting_of(task)
  local ids, places = {}, {}
  for _, lane in ipairs(call("ZRANGE", HEADS, 0, -1)) do
    if lane:match("^%-?%d+!?:(.*)$") == task and #places < DROPPED_AT_ONCE then
      for _, at in ipairs(call("ZRANGE", ROOT .. "q:" .. lane, 0, DROPPED_AT_ONCE - #places - 1)) do
        places[#places + 1] = at
      end
    end
  end
  for _, key in ipairs(call("ZRANGE", ROOT .. "keys:" .. task, 0, DROPPED_AT_ONCE)) do
    if #places >= DROPPED_AT_ONCE then break end
    for _, at in ipairs(call("ZRANGE", ROOT .. "parked:" .. pair(task, key), 0, DROPPED_AT_ONCE - #places - 1)) do
      places[#places + 1] = at:sub(-12)
    end
  end
  for _, id in pairs(book.ids_of(places)) do ids[#ids + 1] = id end
  if #ids < DROPPED_AT_ONCE then
    for _, id in ipairs(call("ZRANGE", ROOT .. "held:" .. task, 0, DROPPED_AT_ONCE - #ids - 1)) do ids[#ids + 1] = id end
  end
  return ids
end

-- Cancel and drop end what a task has waiting, some at a time.
local function drop(task)
  book.write_all()
  local ids, waiting = waiting_of(task), {}
  book.load(ids)
  for i, id in ipairs(ids) do waiting[i] = runs[id] end
  holding.end_all(waiting, "dropped", note)
  return #ids
end

local function ask_task(subject)
  local task, changes = subject[1], 0
  if wish == "cancel" or wish == "drop" then
    changes = drop(task)
  else
    local spec = policies.spec_of(task) or { subject[2], false, true, false, false, false, false, false, "", "" }
    if spec[S_PAUSED] == (wish == "pause") then return 0 end
    spec[S_PAUSED], changes = wish == "pause", 1
    specs[task] = spec
    book.hput(SPECS, task, cmsgpack.pack(spec))
    if wish == "resume" then
      for _ = 1, math.min(ANNOUNCED, book.count(COUNTS, "q:" .. task) - book.count(COUNTS, "w:" .. task)) do book.arrive(task, now) end
    end
  end
  if changes > 0 then policies.decided(task, false, REASONS[wish], changes, false, note, by) end
  return changes
end

local function ask_schedule(id)
  local plan = timetable.schedule_of(id)
  if not plan then return 0 end
  if wish == "cancel" or wish == "drop" then
    timetable.drop_schedule(id)
  else
    if plan[P_PAUSED] == (wish == "pause") then return 0 end
    plan[P_PAUSED], plan[P_NOTE], plan[P_VERSION] = wish == "pause", note, plan[P_VERSION] + 1
    if wish == "resume" then plan[P_SINCE] = now end -- what was missed meanwhile is not made up
    timetable.put_schedule(plan)
    if wish == "resume" and plan[P_FIRES] then book.arrive(false, plan[P_FIRES]) end
  end
  policies.decided(plan[P_TASK], plan[P_KEY], REASONS[wish], 1, false, note, by)
  return 1
end

local ask = { runs = ask_run, tasks = ask_task, schedules = ask_schedule }
local answer = { instant(now) }
if of == "runs" then book.load(subjects) end
for i, subject in ipairs(subjects) do answer[i + 1] = ask[of](subject) end
hinting.conclude()
return answer
