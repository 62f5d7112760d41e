-- twin: rota/stores/idle.py
-- Hints: wake as many idle workers as there are runs for, not all of them. Workers that have the same tasks and queues are a
-- crew: c:<crew> has its tasks, and i:<crew> its idle workers, scored by the time at which each claims again without a hint.
-- The name of a crew begins with "q" if it serves only the queues in cq:<crew>; another crew serves all queues.
local hints = {}

local IDLE, SEEN = ROOT .. "idle", ROOT .. "seen"
-- The row of a worker. READY is the token of its last claim if it can be handed a run, else false. HANDED is the id of the
-- run that it was handed since that claim. ORDERS is { seats, quiet, stop }, or missing if nobody asks anything of it.
local W_LAST, W_CREW, W_SEEN, W_IDLE, W_READY, W_HANDED, W_LEASE, W_ORDERS = 1, 2, 3, 4, 5, 6, 7, 8
local known = {} -- anew

function hints.knows(crew, task)
  local name = crew .. task
  if known[name] == nil then known[name] = call("SISMEMBER", ROOT .. "c:" .. crew, task) == 1 end
  return known[name]
end

function hints.is_bound(crew) return crew:sub(1, 1) == "q" end

-- Whether `crew` may take runs of the lanes `name` (book.lane_name).
function hints.serves(crew, name)
  local task, queue = name:match("^([^%z]*)%z?([^%z]*)")
  if not hints.knows(crew, task) then return false end
  if queue == "*" or not hints.is_bound(crew) then return true end
  return call("SISMEMBER", ROOT .. "cq:" .. crew, queue == "" and "default" or queue) == 1
end

-- The idle workers of `crew` that claimed within IDLE_MEMORY seconds; those that wake last come first. The others are
-- removed from i:<crew>.
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

-- Take from `asleep` the first worker that serves the lanes `name`, unless it wakes by itself until `due`. If a run of any queue
-- may start, take one such worker of each crew that serves only some queues. Return whether a worker serves these lanes.
function hints.choose_sleepers(asleep, name, due, hinted)
  local any, seen, at = name:sub(-2) == "\0*", {}, 1
  while asleep[at] do
    local crew = asleep[at][3]
    local group = hints.is_bound(crew) and crew or "all"
    if not seen[group] and hints.serves(crew, name) then
      seen[group] = true
      if asleep[at][2] > due then
        hinted[#hinted + 1] = table.remove(asleep, at)
        at = at - 1
      end
      if not any then break end
    end
    at = at + 1
  end
  return next(seen) ~= nil
end

-- Choose one idle worker for each arrival, unless that worker claims in time without a hint. An arrival without a name is a
-- schedule: any worker can fire it, and one worker that claims in time is enough.
function hints.to_hint()
  local tick
  for i, name in ipairs(arrival_names) do
    if not name and (not tick or arrival_dues[i] < tick) then tick = arrival_dues[i] end
  end
  local asleep = hints.all_sleepers(tick and math.huge or #arrival_names)
  local hinted, nobody = {}, {}
  for i, name in ipairs(arrival_names) do
    if #asleep == 0 then break end
    if name and not nobody[name] then nobody[name] = not hints.choose_sleepers(asleep, name, arrival_dues[i], hinted) end
  end
  if tick and #asleep > 0 and #hinted == 0 and asleep[#asleep][2] > tick then hinted[1] = asleep[1] end
  return hinted
end

-- `words` as the server would reply them (RESP), so that the message is read like the reply to a claim.
function hints.framed(words)
  local lines = { "*" .. #words .. "\r\n" }
  for _, word in ipairs(words) do lines[#lines + 1] = word and ("$" .. #word .. "\r\n" .. word .. "\r\n") or "$-1\r\n" end
  return table.concat(lines)
end

-- Whether somebody subscribes to `channel`. The number that PUBLISH returns does not say this: it also counts those who
-- subscribe to a pattern, for example a person who monitors the server.
function hints.is_heard(channel)
  local reply = redis.pcall("PUBSUB", "NUMSUB", channel)
  return not reply.err and reply[2] > 0
end

-- Lease the run `newcomer` to the idle worker `sleeper`, if the run is due now and the worker can be handed a run. The
-- message has all that a claim would return, so the worker needs no claim. The message can get lost: so the lease is short,
-- and the worker's next claim says which handed run it took; if it took none, that claim returns the run. The run is read
-- again here, because a later run of the same put may have joined it and moved its due time.
function hints.hand_over(sleeper)
  local worker, spec = sleeper[1], policies.spec_of(book.task_of(arrival_names[1]))
  local channel = ROOT .. "hints:" .. worker
  if arrival_dues[1] > now or policies.starts_nothing(spec) or policies.is_gated(spec) or (spec and spec[S_OVERRIDES]) then return false end
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
  events.record_run("started", run)
  row[W_IDLE], row[W_READY], row[W_HANDED] = false, false, newcomer
  call("HSET", ROOT .. "workers", worker, cmsgpack.pack(row))
  -- The last claim of the worker found nothing. The handed run becomes the batch of that claim.
  call("SET", ROOT .. "batch:" .. worker, cmsgpack.pack({ row[W_LAST], newcomer }))
  return true
end

-- Write all changes and publish hints: the workers to wake, the runs that have changed, and whether there are events.
function hints.conclude()
  policies.write_decisions()
  local workers, ids = {}, {}
  if #arrival_names > 0 then
    for _, sleeper in ipairs(hints.to_hint()) do
      call("ZREM", ROOT .. "i:" .. sleeper[3], sleeper[1])
      -- A run of a plan that is under way starts with a claim, which carries out the rest of the plan before.
      local handed = #arrival_names == 1 and newcomer and not planning and hints.hand_over(sleeper)
      if not handed then workers[#workers + 1] = sleeper[1] end
    end
  end
  book.write_all()
  local news = events.write() or nil
  for id in pairs(touched) do ids[#ids + 1] = id end
  if #workers > 0 or #ids > 0 or news then call("PUBLISH", ROOT .. "hints", cmsgpack.pack({ workers, ids, news })) end
end
