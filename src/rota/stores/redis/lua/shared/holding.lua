-- Holds: a queued run stands in the due index if and only if nothing holds it. Whoever takes a running or a ready run
-- of a saturated key away, or moves it to later, lets the best parked one go: one too many does no harm, the next
-- claim parks it again; one too few would wait for ever.
local holding = {}

function holding.best_parked(task, key)
  local name = ROOT .. "parked:" .. pair(task, key)
  book.write_set(name)
  local first = call("ZRANGE", name, 0, 0)[1]
  return first and first:sub(-12)
end

function holding.unpark(task, key, most)
  for _ = 1, most do
    local found = holding.best_parked(task, key)
    if not found then
      book.zput(ROOT .. "keys:" .. task, key, false)
      return
    end
    local run = book.get(book.ids_of({ found })[tonumber(found)])
    book.leave(run)
    run.state = "q"
    book.enter(run)
    book.restate(run)
    book.arrive(task, run[DUE_AT])
  end
end

-- A run of a gated task, in this state and due then until now, no longer runs or stands ready: another may start.
function holding.freed(run, state, due)
  local spec = policies.spec_of(run[TASK])
  if not policies.is_gated(spec) or not (state == "r" or (state == "q" and due <= now)) then return end
  if run[KEY] and (spec[S_PER_KEY] or state ~= "r") then holding.unpark(run[TASK], run[KEY], 1) end -- an end gives no token back
  book.arrive(run[TASK], now)
end

-- After a change of limits, parked runs go some at a time; LOOSE are the tasks that have more.
local LOOSE = ROOT .. "loose"

function holding.loosen(task)
  local name, left = ROOT .. "keys:" .. task, LOOSENED_AT_ONCE
  book.write_set(name)
  for _, key in ipairs(call("ZRANGE", name, 0, LOOSENED_AT_ONCE)) do
    local parked = call("ZCARD", ROOT .. "parked:" .. pair(task, key))
    holding.unpark(task, key, math.min(parked + 1, left))
    left = left - parked - 1
    if left <= 0 then
      call("SADD", LOOSE, task)
      return
    end
  end
  call("SREM", LOOSE, task)
end

-- Whether `run` waits for the end of the run `id`. A run does not yield to a run that waits for its end.
function holding.is_behind(run, id)
  for _, need in ipairs(run[NEEDS] or {}) do
    if need == id then return true end
  end
  return false
end

-- The expiry of a run that is due at another time now: as long after being due as before.
function holding.moved_expiry(run, before)
  if not run[EXPIRES_AT] or run[DUE_AT] == before then return run[EXPIRES_AT] end
  return after(run[DUE_AT], run[EXPIRES_AT] - before)
end

-- When a run that waited for its key may start: not before each rule that holds now has let go.
function holding.rested(run)
  local due, mark = run[DUE_AT], policies.mark_of(run[TASK], run[UNIQUE_KEY] or run[KEY] or "")
  for _, rule in ipairs(mark[M_FINISHED] and run[COOLDOWNS] or {}) do
    if mark[M_FAILURES] >= rule[1] then due = math.max(due, mark[M_FINISHED] + rule[2]) end
  end
  return after(due, 0)
end

-- Something has ended or is done: those that waited for nothing else may start.
-- Whoever waited for any end of this has seen one, a cancel too: it is not waited for again.
function holding.remember_end(need)
  local space = need:find(" ", 1, true)
  local mark = policies.mark_of(need:sub(2, space - 1), need:sub(space + 1))
  if not mark[M_FINISHED] then
    mark[M_FINISHED] = now
    policies.put_mark(mark)
  end
end

function holding.meet_needs(met)
  local waiting, is_met = {}, {}
  for _, need in ipairs(met) do
    local name = ROOT .. "awaits:" .. need
    local some = call("SMEMBERS", name)
    if #some > 0 then
      call("DEL", name)
      if need:sub(1, 1) == "*" then holding.remember_end(need) end
    end
    for _, id in ipairs(some) do waiting[#waiting + 1] = id end
    is_met[need] = true
  end
  if #waiting == 0 then return end
  table.sort(waiting)
  book.load(waiting)
  for _, id in ipairs(waiting) do
    local child = runs[id]
    if child and not book.is_final(child) and child[NEEDS] then
      local left = {}
      for _, need in ipairs(child[NEEDS]) do
        if not is_met[need] then left[#left + 1] = need end
      end
      book.leave(child)
      child[NEEDS] = #left > 0 and left
      if child[COOLDOWNS] and not child[NEEDS] then
        local before = child[DUE_AT]
        child[DUE_AT] = holding.rested(child)
        child[EXPIRES_AT] = holding.moved_expiry(child, before)
      end
      if child.state == "w" then
        child.state = book.waits(child, false)
        if child.state == "q" then book.arrive(child[TASK], child[DUE_AT]) end
      end
      book.enter(child)
      book.save(child)
    end
  end
end

-- A run has ended. Its mark is written before: those that waited are judged by it.
function holding.release(run)
  local met = { run[AWAITED] and run.id or nil }
  if run[WRITES_MARK] then
    local name = run[TASK] .. " " .. (run[UNIQUE_KEY] or run[KEY] or "")
    met[#met + 1] = "*" .. name
    if run.state == "s" then met[#met + 1] = "+" .. name end
  end
  holding.meet_needs(met)
end

-- End what waits.
function holding.end_all(waiting, reason, note)
  local states = {}
  for i, run in ipairs(waiting) do
    states[i], run[NOTE] = run.state, note
    book.finish(run, "c", reason)
    touched[run.id] = true
  end
  for i, run in ipairs(waiting) do -- not before all of them are gone: else one makes room for the next
    holding.release(run)
    holding.freed(run, states[i], run[DUE_AT])
  end
end

-- The same, each with a decision of its own.
function holding.cancel_all(waiting, reason, note)
  for _, run in ipairs(waiting) do policies.count_decision(run[TASK], run[KEY], reason, 1, run.id, note) end
  holding.end_all(waiting, reason, note)
end

function holding.waiting_in(group)
  local name, found = ROOT .. "g:" .. group, {}
  book.write_set(name)
  local ids = call("ZRANGE", name, 0, -1)
  book.load(ids)
  for _, id in ipairs(ids) do
    local run = runs[id]
    if run and (run.state == "p" or book.is_queued(run)) then found[#found + 1] = run end
  end
  return found
end

function holding.is_late(run)
  return book.is_queued(run) and run[EXPIRES_AT] and run[EXPIRES_AT] <= now
end

function holding.expire(late)
  local before = {}
  for i, run in ipairs(late) do
    before[i] = run.state
    book.finish(run, "c", "expired")
    touched[run.id] = true
    policies.count_decision(run[TASK], run[KEY], "expired", 1, run.id)
    holding.release(run)
  end
  for i, run in ipairs(late) do -- not before all of them are gone: else one makes room for the next
    holding.freed(run, before[i], run[DUE_AT])
  end
end

-- What is too late to start, by id.
function holding.expire_due()
  book.write_set(EXPIRING)
  local ids = call("ZRANGEBYSCORE", EXPIRING, "-inf", now, "LIMIT", 0, EXPIRED_AT_ONCE)
  local late, found = {}, {}
  if #ids == 0 then return found end
  book.load(ids)
  for _, id in ipairs(ids) do
    if runs[id] and holding.is_late(runs[id]) then
      late[#late + 1], found[#found + 1] = runs[id], id
    else
      book.zput(EXPIRING, id, false)
    end
  end
  holding.expire(late)
  return found
end

-- Who stands in the way of an equal run; not one that is too late to start: whoever joined it would be lost.
function holding.holders(task, unique)
  local late, found = {}, {}
  local ids = book.holders_of(task, unique)
  book.load(ids)
  for _, id in ipairs(ids) do
    local run = runs[id]
    if run and not book.is_final(run) then
      if holding.is_late(run) then late[#late + 1] = run else found[#found + 1] = run end
    end
  end
  if #late > 0 then holding.expire(late) end
  return found
end
