-- with: clock book events policies holds hints schedules output gates wakes shares charts
-- twin: rota/stores/ledger/claim.py
-- claim: lease the best due runs that may start now to one worker; offer it lapsed runs and due schedules.
local request = cmsgpack.unpack(ARGV[3])
local worker, n, crew, free, seconds, report, tallies, has_tasks, ready, took, queues, alone, totals = unpack(request, 1, 13)

-- `crew` is a digest of the worker's tasks and queues. These themselves are read only when the crew is new.
if has_tasks and call("EXISTS", ROOT .. "c:" .. crew) == 0 then
  book.send("SADD", ROOT .. "c:" .. crew, cmsgpack.unpack(ARGV[4]))
  if queues then book.send("SADD", ROOT .. "cq:" .. crew, queues) end
  call("HSET", ROOT .. "crews", crew, ARGV[5])
end

local row = call("HGET", ROOT .. "workers", worker)
row = row and cmsgpack.unpack(row) or { 0, crew }
local last = row[W_LAST]
local chosen, parked, passed_over, full, seats = {}, {}, false, false, free

local gate_of_task, suspects, skipped_suspect = {}, true, false

-- The lanes with due runs, by priority; the lanes of a priority are in the order of their heads.
local function due_lanes()
  local levels, priorities = {}, {}
  local heads = call("ZRANGEBYSCORE", HEADS, "-inf", now, "WITHSCORES")
  for i = 1, #heads, 2 do
    local priority, bang, name = heads[i]:match("^(%-?%d+)(!?):(.*)$")
    priority = tonumber(priority)
    if not levels[priority] then
      levels[priority] = {}
      priorities[#priorities + 1] = priority
    end
    local lane = {
      name = heads[i], head = tonumber(heads[i + 1]), suspect = bang == "!", served = name, task = book.task_of(name), at = 0,
    }
    lane.shared = name:byte(-1) == 0 -- the lane of all shares
    table.insert(levels[priority], lane)
  end
  table.sort(priorities, function(a, b) return a > b end)
  return levels, priorities
end

-- Whether this worker may take runs of `lane`. Called only for lanes that `walk` reaches, because it reads the task's spec.
local function may_open(lane)
  if not wakes.is_open(crew, lane.served) then return false end
  if lane.suspect and not suspects then
    skipped_suspect = true
    return false
  end
  if gate_of_task[lane.task] == nil then gate_of_task[lane.task] = gates.gate_of(lane.task) end
  lane.gate = gate_of_task[lane.task]
  return true
end

-- Read the next candidates of `lane`, with the fields that a gate needs.
local function read_on(lane)
  local most = math.min(CANDIDATES_AT_ONCE, math.max(lane.gate and GATED_AT_ONCE or 1, free - #chosen))
  local some = call("ZRANGE", ROOT .. "q:" .. lane.name, lane.at, lane.at + most - 1, "WITHSCORES")
  local places, keys, found = {}, {}, {}
  for i = 1, #some, 2 do
    if tonumber(some[i + 1]) > now then break end
    places[#places + 1] = some[i]
  end
  lane.at, lane.queue, lane.next = lane.at + #places, found, 1
  if #places == 0 then return end
  local ids = book.ids_of(places)
  for i, at in ipairs(places) do keys[i] = ROOT .. "r:" .. (ids[tonumber(at)] or "") end
  local texts = call("MGET", unpack(keys))
  for i, at in ipairs(places) do
    local seq = tonumber(at)
    local readable, _, _, _, _, expires, _, key = pcall(cmsgpack.unpack_limit, texts[i], 6, 2)
    if not readable then
      book.zput(ROOT .. "q:" .. lane.name, at, after(now, UNREADABLE))
      if lane.all then book.zput(ROOT .. "q:" .. lane.all.name, at, after(now, UNREADABLE)) end
      book.look_at_lane(lane.name, lane.share)
    elseif not (expires and expires <= now) then
      found[#found + 1] = {
        id = ids[seq], seq = seq, place = at, due = tonumber(some[2 * i]), text = texts[i], key = key, lane = lane,
        expires = expires,
      }
    end
  end
  if #found > 0 then return end
  lane.passed = (lane.passed or 0) + #places
  if lane.passed < PASSED_AT_ONCE then return read_on(lane) end
  full = true -- so many runs are too late to start: the next claim reads on
end

local function first_of(lane)
  if not lane.queue or lane.next > #lane.queue then read_on(lane) end
  return lane.queue[lane.next]
end

local function peek(lane)
  if lane.shared then return shares.next_run(lane, first_of) end
  return first_of(lane)
end

-- Choose `run`, park it or pass it over. Return true if the claim needs no more candidates.
local function consider(run)
  local lane = run.lane
  if lane.suspect and #chosen > 0 then
    passed_over, suspects = true, false -- another claim returns it alone
    return false
  end
  if lane.gate then
    local pass = gates.try_run(lane.gate, run.key)
    if pass == "park" then
      parked[#parked + 1] = run
      full = #parked >= PARKED_AT_ONCE
      return full
    end
    if pass == "shut" then return false end
    gates.take(lane.gate, run.key)
  end
  chosen[#chosen + 1] = run
  shares.count_taken(lane)
  if lane.suspect then
    passed_over, full = true, true -- a suspect comes alone, so that it ends no other run if it ends its worker
    return true
  end
  return #chosen == free
end

-- Merge the lanes of one priority. The lanes are in the order of their heads, so it is enough to open as many lanes as there
-- are seats. But LANES_AT_ONCE may be open, so that of the runs that are due at one instant the first arrival comes first.
local function walk(waiting)
  local open, coming, most = {}, 1, math.max(free, LANES_AT_ONCE)
  while true do
    local best
    for i = #open, 1, -1 do
      local lane = open[i]
      local head = (suspects or not lane.suspect) and not (lane.gate and gates.is_shut(lane.gate)) and peek(lane)
      if not head then
        table.remove(open, i)
      else
        if lane.shared then head.due = lane.head end -- shares come where the oldest of their runs would come
        if not best or head.due < best.due or (head.due == best.due and head.seq < best.seq) then best = head end
      end
    end
    local upnext = waiting[coming]
    if upnext and #open < most and (not best or upnext.head <= best.due) then
      if may_open(upnext) then open[#open + 1] = upnext end
      coming = coming + 1
    elseif not best then
      return
    else
      best.lane.next = best.lane.next + 1
      if consider(best) then return "stop" end
    end
  end
end

local function fence_of(text)
  if text:byte(2) == 97 or text:byte(2) == 65 then return 0 end -- a, A: never claimed before
  return (select(FENCE, cmsgpack.unpack_limit(text, FENCE - 1, 2)))
end

local function lease()
  local until_ = after(now, seconds)
  local fresh = cmsgpack.pack({ 1, worker, n, now, until_, false, false })
  local leases, lapses, gone = {}, {}, {}
  for i, run in ipairs(chosen) do
    local lane, fence = run.lane, fence_of(run.text)
    local names = lane.gate and lane.gate.names or nil
    local plain = fence == 0 and not names
    local text = plain and fresh or cmsgpack.pack({ fence + 1, worker, n, now, until_, false, false, names })
    for _, name in ipairs(names or {}) do book.add(BUSY, "l" .. name, 1) end
    leases[2 * i - 1], leases[2 * i] = run.id, text
    lapses[2 * i - 1], lapses[2 * i] = until_, run.id
    local members = book.slot(gone, lane)
    members[#members + 1] = run.place
    if run.key then book.add(BUSY, "k" .. pair(lane.task, run.key), 1) end
    if lane.suspect then book.add(BUSY, "s" .. worker, 1) end
    if run.expires then book.zput(EXPIRING, run.id, false) end
    call("SETRANGE", ROOT .. "r:" .. run.id, 0, "r")
    runs[run.id] = nil
    events.record("started", "runs", run.id, lane.task, run.key, "r", false, fence + 1, worker)
    run.lease, run.text = text, "r" .. run.text:sub(2)
  end
  book.send("HSET", LEASES, leases)
  book.send("ZADD", LAPSE, lapses)
  for lane, members in pairs(gone) do
    book.send("ZREM", ROOT .. "q:" .. lane.name, members)
    if lane.all then book.send("ZREM", ROOT .. "q:" .. lane.all.name, members) end
    book.look_at_lane(lane.name, lane.share)
    book.add(COUNTS, "q:" .. lane.task, -#members)
    book.add(COUNTS, "r:" .. lane.task, #members)
  end
end

local function park()
  for _, candidate in ipairs(parked) do
    local run = book.parse(candidate.id, candidate.text)
    book.leave(run)
    run.state = "k"
    book.enter(run)
    book.restate(run)
  end
end

local function take()
  gates.unpark_opened()
  for _, task in ipairs(call("SMEMBERS", LOOSE)) do holds.unpark_all(task) end
  holds.release_more()
  if free <= 0 then return end
  book.write_runs() -- candidates are read from the stored records
  book.write_lanes()
  local alone = book.count(BUSY, "s" .. worker) == 0
  suspects = alone
  local levels, priorities = due_lanes()
  for _, priority in ipairs(priorities) do
    if walk(levels[priority]) == "stop" then break end
  end
  park()
  lease()
  gates.keep_rates(gate_of_task)
  if not alone and (skipped_suspect or #chosen > 0 or next(gate_of_task)) then passed_over = true end
end

-- Give the run that the worker was handed a full lease: the worker has taken it, or this claim returns it.
local function lease_handed()
  local id = n >= last and row[W_HANDED]
  local text = id and call("HGET", LEASES, id)
  local current = text and cmsgpack.unpack(text)
  if not (current and current[L_WORKER] == worker) then return end
  current[L_N], current[L_UNTIL] = n, after(now, seconds)
  text = cmsgpack.pack(current)
  call("HSET", LEASES, id, text)
  book.zput(LAPSE, id, current[L_UNTIL])
  return id, text
end

-- The runs of this claim. A claim that is sent again returns those runs of its batch that the worker still has leased from
-- it. A claim older than the last one returns nothing.
local function claimed_runs()
  local found = {}
  local handed, handed_lease = lease_handed()
  if n > last then
    local ids = { n }
    if handed and handed ~= took then
      output.add(found, handed, call("GET", ROOT .. "r:" .. handed), handed_lease)
      ids[2], free = handed, free - 1
    end
    take()
    for _, run in ipairs(chosen) do
      output.add(found, run.id, run.text, run.lease)
      ids[#ids + 1] = run.id
    end
    call("SET", ROOT .. "batch:" .. worker, cmsgpack.pack(ids))
    return found
  end
  local text = call("GET", ROOT .. "batch:" .. worker)
  local batch = text and cmsgpack.unpack(text) or {}
  if batch[1] ~= n then return found end
  for i = 2, #batch do
    local lease_text = call("HGET", LEASES, batch[i])
    local current = lease_text and cmsgpack.unpack(lease_text)
    if current and current[L_WORKER] == worker and current[L_N] == n then
      output.add(found, batch[i], call("GET", ROOT .. "r:" .. batch[i]), lease_text)
    end
  end
  return found
end

local function offer_lapsed()
  if alone then return {} end
  book.write_set(LAPSE)
  local ids, found = call("ZRANGEBYSCORE", LAPSE, "-inf", now, "LIMIT", 0, OFFERS), {}
  if #ids > 0 then
    book.write_runs()
    book.write_hash(LEASES)
    output.add_all(found, ids)
    for _, id in ipairs(ids) do book.zput(LAPSE, id, after(now, OFFER_AGAIN)) end
  end
  return found
end

local function offer_schedules()
  if alone or not has_tasks and free <= 0 then return {} end
  local ids = call("ZRANGEBYSCORE", LOOK, "-inf", now, "LIMIT", 0, DUE_SCHEDULES)
  local texts, found = #ids > 0 and call("HMGET", SCHEDULES, unpack(ids)) or {}, {}
  for i, id in ipairs(ids) do
    book.zput(LOOK, id, texts[i] and after(now, OFFER_AGAIN))
    if texts[i] then
      found[#found + 1] = id
      found[#found + 1] = texts[i]
    end
  end
  return found
end

local function register(idle, ready, wake)
  if n < last then return end -- an old claim that arrives late: a newer one has registered the worker
  if row[W_CREW] ~= crew then call("ZREM", ROOT .. "i:" .. row[W_CREW], worker) end
  if idle then
    call("ZADD", ROOT .. "i:" .. crew, wake or "inf", worker)
    call("SADD", IDLE, crew)
  else
    call("ZREM", ROOT .. "i:" .. crew, worker)
  end
  call("HSET", ROOT .. "workers", worker, cmsgpack.pack({ n, alone and "" or crew, now, idle, ready, false, seconds, row[W_ORDERS] }))
  call("ZADD", SEEN, now, worker)
  if report and n > last then
    call("HSET", ROOT .. "reports", worker, report)
    charts.add(tallies)
    charts.count(totals)
  end
end

-- The rows of the overrides that change how runs of the tasks are called. A repeated claim has looked at no task.
local function overridden_policies()
  local texts = {}
  if n <= last then
    for _, task in ipairs(cmsgpack.unpack(ARGV[4])) do policies.spec_of(task) end
  end
  for _, spec in pairs(specs) do
    if spec and spec[S_OVERRIDES] and spec[S_OVERRIDES][2] then texts[#texts + 1] = spec[S_OVERRIDES][2] end
  end
  return texts
end

local late = holds.expire_due()
local found = claimed_runs()
local due = offer_schedules()
book.write_set(LOOK)
book.write_lanes()
local idle = not alone and #found / 4 < seats
local wake
if idle then
  wake = wakes.wake_at(crew, worker, full or n <= last)
elseif not alone then
  wake = wakes.next_schedule(worker)
end
register(idle, idle and #found == 0 and ready or false, wake)
local lapsed = offer_lapsed()
-- A worker that claims without tasks stops: wake another one, which claims in time for the next run or schedule.
if not has_tasks and not idle then book.arrive(false, now) end
hints.conclude()
return { instant(now), wake and instant(math.max(0, wake - now)) or false, passed_over and 1 or 0, found, lapsed, due, late,
  row[W_ORDERS] and cmsgpack.pack(row[W_ORDERS]) or false, overridden_policies() }
