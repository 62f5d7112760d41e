-- Whom to wake: as many idle workers as there is work for, never all of them. Workers of the same tasks are a crew:
-- c:<crew> are its tasks, i:<crew> its idle workers by when they look again by themselves.
local hinting = {}

local IDLE, SEEN = ROOT .. "idle", ROOT .. "seen"
local IDLE_MEMORY = 15
local known = {}

function hinting.knows(crew, task)
  local name = crew .. task
  if known[name] == nil then known[name] = call("SISMEMBER", ROOT .. "c:" .. crew, task) == 1 end
  return known[name]
end

-- Idle workers of a crew that were here lately, the last to wake first; those that fell silent are struck off.
function hinting.sleepers(crew, most)
  local found, at = {}, 0
  while #found < most do
    local some = call("ZREVRANGE", ROOT .. "i:" .. crew, at, at + 31, "WITHSCORES")
    if #some == 0 then break end
    for i = 1, #some, 2 do
      local seen = tonumber(call("ZSCORE", SEEN, some[i]) or 0)
      if seen > now - IDLE_MEMORY then
        found[#found + 1] = { some[i], tonumber(some[i + 1]), crew }
        at = at + 1
      else
        call("ZREM", ROOT .. "i:" .. crew, some[i])
      end
    end
  end
  if at == 0 then call("SREM", IDLE, crew) end
  return found
end

function hinting.all_sleepers(most)
  local found = {}
  for _, crew in ipairs(call("SMEMBERS", IDLE)) do
    for _, sleeper in ipairs(hinting.sleepers(crew, most)) do found[#found + 1] = sleeper end
  end
  table.sort(found, function(a, b) return a[2] > b[2] end)
  return found
end

-- One idle worker for each arrival, unless it wakes in time by itself. A schedule comes without a task: anyone can
-- fire it, and one who wakes in time is enough.
function hinting.to_hint()
  local tick
  for i, task in ipairs(arrival_tasks) do
    if not task and (not tick or arrival_dues[i] < tick) then tick = arrival_dues[i] end
  end
  local asleep = hinting.all_sleepers(tick and math.huge or #arrival_tasks)
  local hinted, nobody = {}, {}
  for i, task in ipairs(arrival_tasks) do
    if #asleep == 0 then break end
    if task and not nobody[task] then
      nobody[task] = true
      for at, sleeper in ipairs(asleep) do
        if hinting.knows(sleeper[3], task) then
          nobody[task] = nil
          if sleeper[2] > arrival_dues[i] then hinted[#hinted + 1] = table.remove(asleep, at) end
          break
        end
      end
    end
  end
  if tick and #asleep > 0 and #hinted == 0 and asleep[#asleep][2] > tick then hinted[1] = asleep[1] end
  return hinted
end

-- Everything is written; then hints for what came of it.
function hinting.conclude()
  policies.write_decisions()
  book.write_all()
  local workers, ids = {}, {}
  if #arrival_tasks > 0 then
    for i, sleeper in ipairs(hinting.to_hint()) do
      workers[i] = sleeper[1]
      call("ZREM", ROOT .. "i:" .. sleeper[3], sleeper[1])
    end
  end
  for id in pairs(touched) do ids[#ids + 1] = id end
  if #workers > 0 or #ids > 0 then call("PUBLISH", ROOT .. "hints", cmsgpack.pack({ workers, ids })) end
end
