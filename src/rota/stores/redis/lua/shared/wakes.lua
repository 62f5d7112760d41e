-- twin: rota/stores/ledger/claim.py rota/stores/idle.py
-- When an idle worker claims again without a hint: the k-th idle worker does so when the k-th next run is due.
local wakes = {}

-- Whether runs of the lanes `name` may start in a worker of `crew`.
function wakes.is_open(crew, name)
  if not hints.serves(crew, name) then return false end
  return not policies.starts_nothing(policies.spec_of(book.task_of(name)))
end

-- When runs of the lanes `name`, which may not start in a worker of `crew` now, may start by themselves: the freeze of the store
-- or the pause of the task ends then.
function wakes.pause_end(crew, name)
  if not hints.serves(crew, name) then return end
  local frozen, spec = policies.frozen(), policies.spec_of(book.task_of(name))
  if frozen then return frozen[2] or nil end
  return spec and policies.is_paused(spec) and spec[S_PAUSED_UNTIL] or nil
end

-- Whether two crews have a task and a queue in common.
function wakes.share_work(crew, other)
  if crew == other then return true end
  if #call("SINTER", ROOT .. "c:" .. crew, ROOT .. "c:" .. other) == 0 then return false end
  if not hints.is_bound(crew) or not hints.is_bound(other) then return true end
  return #call("SINTER", ROOT .. "cq:" .. crew, ROOT .. "cq:" .. other) > 0
end

function wakes.is_here(worker)
  return tonumber(call("ZSCORE", SEEN, worker) or 0) > now - IDLE_MEMORY
end

-- When the full worker `worker` claims to fire schedules; nil if an idle worker claims in time.
function wakes.next_schedule(worker)
  local first = tonumber(call("ZRANGE", LOOK, 0, 0, "WITHSCORES")[2])
  if not first then return end
  for _, crew in ipairs(call("SMEMBERS", IDLE)) do
    for _, other in ipairs(call("ZRANGEBYSCORE", ROOT .. "i:" .. crew, "-inf", math.max(first, now))) do
      if other ~= worker and wakes.is_here(other) then return end
    end
  end
  return first
end

-- When other idle workers that share a task and a queue with `crew` claim again, in order.
function wakes.others_wake(crew, worker)
  local found = {}
  for _, other in ipairs(call("SMEMBERS", IDLE)) do
    if wakes.share_work(crew, other) then
      local some = call("ZRANGEBYSCORE", ROOT .. "i:" .. other, "(" .. string.format("%.17g", now), "(inf", "WITHSCORES")
      for i = 1, #some, 2 do
        if some[i] ~= worker and wakes.is_here(some[i]) then
          found[#found + 1] = tonumber(some[i + 1])
        end
      end
    end
  end
  table.sort(found)
  return found
end

-- Add to `found` the next due times in `lane` after now, up to `most` of them.
function wakes.following(lane, most, found)
  local from = "(" .. string.format("%.17g", now)
  local some = call("ZRANGEBYSCORE", ROOT .. "q:" .. lane, from, "+inf", "WITHSCORES", "LIMIT", 0, most)
  for i = 2, #some, 2 do found[#found + 1] = tonumber(some[i]) end
end

-- The next due times of the tasks of `crew`, in order: at least `most` of them if there are so many. `due` are the lanes that
-- have a due run already.
function wakes.upcoming(crew, due, most)
  local found, at = {}, 0
  for _, lane in ipairs(due) do wakes.following(lane, most, found) end
  while true do
    local from = "(" .. string.format("%.17g", now)
    local some = call("ZRANGEBYSCORE", HEADS, from, "+inf", "WITHSCORES", "LIMIT", at, 50)
    for i = 1, #some, 2 do
      table.sort(found)
      if found[most] and found[most] <= tonumber(some[i + 1]) then return found end
      local name = some[i]:match("^%-?%d+!?:(.*)$")
      if wakes.is_open(crew, name) then
        wakes.following(some[i], most, found)
      else
        found[#found + 1] = wakes.pause_end(crew, name)
      end
    end
    if #some == 0 then break end
    at = at + 50
  end
  table.sort(found)
  return found
end

function wakes.next_opening(crew)
  local at = 0
  while true do
    local some = call("ZRANGE", OPENINGS, at, at + 49, "WITHSCORES")
    for i = 1, #some, 2 do
      if wakes.is_open(crew, book.lane_name((gates.unpair(some[i])), "*")) then return tonumber(some[i + 1]) end
    end
    if #some == 0 then return end
    at = at + 50
  end
end

-- The earliest of `opening` and of the times at which the rates of `tasks` open, for tasks whose rate counts for the whole
-- task.
function wakes.task_openings(tasks, opening)
  for task in pairs(tasks) do
    local spec = policies.spec_of(task)
    if spec and spec[S_INTERVAL] and not spec[S_EACH] then
      local opens = policies.opens_at(spec, policies.full_at(task, ""))
      if opens > now and (not opening or opens < opening) then opening = opens end
    end
  end
  return opening
end

-- The first time in `coming` for which too few of the `others` wake: the k-th worker wakes for the k-th run.
function wakes.wake_for(others, coming)
  local awake = 0
  for rank, at in ipairs(coming) do
    while others[awake + 1] and others[awake + 1] <= at do awake = awake + 1 end
    if awake <= rank - 1 then return at end
  end
end

function wakes.wake_at(crew, worker, again)
  book.write_set(OPENINGS)
  for key in pairs(sets) do
    if key:sub(1, #ROOT + 5) == ROOT .. "rate:" then book.write_set(key) end
  end
  local due, tasks, ends = {}, {}, nil
  for _, lane in ipairs(call("ZRANGEBYSCORE", HEADS, "-inf", now)) do
    local name = lane:match("^%-?%d+!?:(.*)$")
    if wakes.is_open(crew, name) then
      due[#due + 1] = lane
      tasks[book.task_of(name)] = true
    else
      local at = wakes.pause_end(crew, name)
      if at and (not ends or at < ends) then ends = at end
    end
  end
  if again and #due > 0 then return now end -- this claim reached a bound, or was sent twice
  if releasing then return now end -- the next claim lets more runs start
  local others = wakes.others_wake(crew, worker)
  local coming = wakes.upcoming(crew, due, #others + 1)
  while #coming > #others + 1 do table.remove(coming) end
  local look = call("ZRANGE", LOOK, 0, 0, "WITHSCORES")[2]
  if look then coming[#coming + 1] = tonumber(look) end -- one worker fires all schedules, and the runs that they make wake the others
  local opening = wakes.task_openings(tasks, wakes.next_opening(crew))
  if opening then coming[#coming + 1] = opening end
  if ends then coming[#coming + 1] = ends end
  table.sort(coming)
  return wakes.wake_for(others, coming)
end
