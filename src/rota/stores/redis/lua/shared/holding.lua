-- Holds: a queued run stands in the due index if and only if nothing holds it. Whoever takes a running or a ready run
-- of a saturated key away, or moves it to later, lets the best parked one go: one too many does no harm, the next
-- claim parks it again; one too few would wait for ever.
local function best_parked(task, key)
  local name = ROOT .. "parked:" .. pair(task, key)
  write_set(name)
  local first = call("ZRANGE", name, 0, 0)[1]
  return first and first:sub(-12)
end

local function unpark(task, key, most)
  for _ = 1, most do
    local found = best_parked(task, key)
    if not found then
      zput(ROOT .. "keys:" .. task, key, false)
      return
    end
    local run = get(ids_of({ found })[tonumber(found)])
    leave(run)
    run.state = "q"
    enter(run)
    restate(run)
    arrive(task, run[DUE])
  end
end

-- A run of a gated task, in this state and due then until now, no longer runs or stands ready: another may start.
local function freed(run, state, due)
  local spec = spec_of(run[TASK])
  if not is_gated(spec) or not (state == "r" or (state == "q" and due <= now)) then return end
  if run[KEY] and (spec[S_PER_KEY] or state ~= "r") then unpark(run[TASK], run[KEY], 1) end -- an end gives no token back
  arrive(run[TASK], now)
end

-- After a change of limits, parked runs go some at a time; LOOSE are the tasks that have more.
local LOOSE, LOOSENED_AT_ONCE = ROOT .. "loose", 1000

local function loosen(task)
  local name, left = ROOT .. "keys:" .. task, LOOSENED_AT_ONCE
  write_set(name)
  for _, key in ipairs(call("ZRANGE", name, 0, LOOSENED_AT_ONCE)) do
    local parked = call("ZCARD", ROOT .. "parked:" .. pair(task, key))
    unpark(task, key, math.min(parked + 1, left))
    left = left - parked - 1
    if left <= 0 then
      call("SADD", LOOSE, task)
      return
    end
  end
  call("SREM", LOOSE, task)
end

-- A run has ended: those that waited for nothing else may start.
local function release(run)
  if not run[AWAITED] then return end
  local name = ROOT .. "awaits:" .. run.id
  local waiting = call("SMEMBERS", name)
  call("DEL", name)
  table.sort(waiting)
  load(waiting)
  for _, id in ipairs(waiting) do
    local child = runs[id]
    if child and not is_final(child) and child[NEEDS] then
      local left = {}
      for _, need in ipairs(child[NEEDS]) do
        if need ~= run.id then left[#left + 1] = need end
      end
      leave(child)
      child[NEEDS] = #left > 0 and left
      if child.state == "w" then
        child.state = waits(child, false)
        if child.state == "q" then arrive(child[TASK], child[DUE]) end
      end
      enter(child)
      save(child)
    end
  end
end

local function is_late(run)
  return is_queued(run) and run[EXPIRES] and run[EXPIRES] <= now
end

local function expire(late)
  local before = {}
  for i, run in ipairs(late) do
    before[i] = run.state
    finish(run, "c", "expired")
    touched[run.id] = true
    decided(run[TASK], run[KEY], "expired", 1, run.id)
    release(run)
  end
  for i, run in ipairs(late) do -- not before all of them are gone: else one makes room for the next
    freed(run, before[i], run[DUE])
  end
  return #late
end

local EXPIRED_AT_ONCE = 500

local function expire_due()
  write_set(EXPIRING)
  local ids = call("ZRANGEBYSCORE", EXPIRING, "-inf", now, "LIMIT", 0, EXPIRED_AT_ONCE)
  if #ids == 0 then return 0 end
  load(ids)
  local late = {}
  for _, id in ipairs(ids) do
    if runs[id] and is_late(runs[id]) then late[#late + 1] = runs[id] else zput(EXPIRING, id, false) end
  end
  return expire(late)
end

-- Who stands in the way of an equal run; not one that is too late to start: whoever joined it would be lost.
local function holders(task, unique)
  local late, found = {}, {}
  local ids = holders_of(task, unique)
  load(ids)
  for _, id in ipairs(ids) do
    local run = runs[id]
    if run and not is_final(run) then
      if is_late(run) then late[#late + 1] = run else found[#found + 1] = run end
    end
  end
  if #late > 0 then expire(late) end
  return found
end
