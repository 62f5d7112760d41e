-- twin: rota/stores/idle.py
-- Whom to wake: as many idle workers as there is work for, never all of them. Workers of the same tasks are a crew:
-- c:<crew> are its tasks, i:<crew> its idle workers by when they look again by themselves.
local hints = {}

local IDLE, SEEN = ROOT .. "idle", ROOT .. "seen"
-- A worker: READY is a word of its own by which it knows what it is handed, if it may be; HANDED the run that it was.
local W_LAST, W_CREW, W_SEEN, W_IDLE, W_READY, W_HANDED, W_LEASE = 1, 2, 3, 4, 5, 6, 7
-- Seconds for which a run is leased to a worker that has not said yet that it took the run.
local UNHEARD = 6
local known = {}

function hints.knows(crew, task)
  local name = crew .. task
  if known[name] == nil then known[name] = call("SISMEMBER", ROOT .. "c:" .. crew, task) == 1 end
  return known[name]
end

-- Idle workers of a crew that were here lately, the last to wake first; those that fell silent are struck off.
function hints.sleepers(crew, most)
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

function hints.all_sleepers(most)
  local found = {}
  for _, crew in ipairs(call("SMEMBERS", IDLE)) do
    for _, sleeper in ipairs(hints.sleepers(crew, most)) do found[#found + 1] = sleeper end
  end
  table.sort(found, function(a, b) return a[2] > b[2] end)
  return found
end

-- One idle worker for each arrival, unless it wakes in time by itself. A schedule comes without a task: anyone can
-- fire it, and one who wakes in time is enough.
function hints.to_hint()
  local tick
  for i, task in ipairs(arrival_tasks) do
    if not task and (not tick or arrival_dues[i] < tick) then tick = arrival_dues[i] end
  end
  local asleep = hints.all_sleepers(tick and math.huge or #arrival_tasks)
  local hinted, nobody = {}, {}
  for i, task in ipairs(arrival_tasks) do
    if #asleep == 0 then break end
    if task and not nobody[task] then
      nobody[task] = true
      for at, sleeper in ipairs(asleep) do
        if hints.knows(sleeper[3], task) then
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

-- An answer as a server writes it, so that what is published is read as the reply to a claim is.
function hints.framed(words)
  local lines = { "*" .. #words .. "\r\n" }
  for _, word in ipairs(words) do lines[#lines + 1] = word and ("$" .. #word .. "\r\n" .. word .. "\r\n") or "$-1\r\n" end
  return table.concat(lines)
end

-- Not by what PUBLISH answers: that counts those who listen to a pattern as well, whoever they are.
function hints.is_heard(channel)
  local counted = redis.pcall("PUBSUB", "NUMSUB", channel)
  return not counted.err and counted[2] > 0
end

-- One run that is due now and finds a worker that holds nothing is leased to it here: it needs no claim, and what is
-- told of it is as good as the reply to one. If that gets lost, the worker's next claim tells it again, because that says
-- what it took; and until then the lease is short. The run is judged as it stands now, not as it came: a later run of
-- the same batch may have joined it, and moved it to later.
function hints.hand_over(sleeper)
  local worker, spec = sleeper[1], policies.spec_of(arrival_tasks[1])
  local channel = ROOT .. "hints:" .. worker
  if arrival_dues[1] > now or policies.starts_nothing(spec) or policies.is_gated(spec) then return false end
  local row = call("HGET", ROOT .. "workers", worker)
  row = row and cmsgpack.unpack(row)
  if not (row and row[W_READY] and hints.is_heard(channel)) then return false end
  book.write_runs()
  local text = call("GET", ROOT .. "r:" .. newcomer)
  local run = book.parse(newcomer, text)
  if run.state ~= "q" or run[DUE_AT] > now or (run[EXPIRES_AT] and run[EXPIRES_AT] <= now) then return false end
  local till = after(now, math.min(row[W_LEASE], UNHEARD))
  run.lease = { run[FENCE] + 1, worker, row[W_LAST], now, till, false, false }
  local body = run.apart and call("GET", ROOT .. "b:" .. newcomer)
  call("PUBLISH", channel, hints.framed({
    row[W_READY], newcomer, "r" .. text:sub(2), cmsgpack.pack(run.lease), body or false,
  }))
  book.leave(run)
  run.state = "r"
  book.enter(run)
  book.restate(run)
  row[W_IDLE], row[W_READY], row[W_HANDED] = false, false, newcomer
  call("HSET", ROOT .. "workers", worker, cmsgpack.pack(row))
  call("SET", ROOT .. "batch:" .. worker, cmsgpack.pack({ row[W_LAST], newcomer })) -- that claim had found nothing
  return true
end

-- Everything is written; then hints for what came of it.
function hints.conclude()
  policies.write_decisions()
  local workers, ids = {}, {}
  if #arrival_tasks > 0 then
    for _, sleeper in ipairs(hints.to_hint()) do
      call("ZREM", ROOT .. "i:" .. sleeper[3], sleeper[1])
      local handed = #arrival_tasks == 1 and newcomer and hints.hand_over(sleeper)
      if not handed then workers[#workers + 1] = sleeper[1] end
    end
  end
  book.write_all()
  for id in pairs(touched) do ids[#ids + 1] = id end
  if #workers > 0 or #ids > 0 then call("PUBLISH", ROOT .. "hints", cmsgpack.pack({ workers, ids })) end
end
