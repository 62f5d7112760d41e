-- with: clock output
-- twin: rota/stores/redis/queries.py
-- runs: those with these ids, or those that match, newest first, the last end first, or the first due first. One script reads
-- a bounded number.
-- Answers the time; the place before which to read on, the end and the arrival number of a run (false: there are no more);
-- how many runs it looked at; the runs; and, in the order of arrival, when the last run that it looked at was made.
local request = cmsgpack.unpack(ARGV[3])
local ids, states, tasks, key, limit, group, order =
  request[1], request[2], request[3], request[4], request[5], request[7], request[8]
local place = request[6] or {}
local before = place[2] or math.huge
local counting = request[9] -- answer how many runs of each state and task match, and not the runs
local LEASES, OUTSIDE, FAILURES = ROOT .. "leases", 5000, 32000
local sort = redis.REDIS_VERSION_NUM and "SORT_RO" or "SORT" -- Redis 6.2 has only the one, later scripts may only use the other
local answer, looked, taken, wanted = {}, 0, 0, {}
local counts = {} -- by the letter of a state and a task
local last_seen = nil -- the record of the last run that was looked at
for _, task in ipairs(tasks or {}) do wanted[task] = true end

local function matches(text)
  if not states:find(text:sub(1, 1), 1, true) then return false end
  if not tasks and not key then return true end
  local readable, _, _, _, _, _, its_task, its_key, its_unique_key = pcall(cmsgpack.unpack_limit, text, 7, 2)
  return readable and (not tasks or wanted[its_task]) and (not key or its_key == key or its_unique_key == key)
end

local function count_one(text)
  local readable, _, _, _, _, _, task = pcall(cmsgpack.unpack_limit, text, 5, 2)
  if not readable then return end
  local name = text:sub(1, 1) .. task
  counts[name] = (counts[name] or 0) + 1
end

-- Add the runs `found`, pairs of (seq, id), that match to the answer, in their order. Return the seq of the run that fills
-- the page.
local function read_in_order(found)
  local keys = {}
  for i, one in ipairs(found) do keys[i] = ROOT .. "r:" .. one[2] end
  local texts = #keys > 0 and call("MGET", unpack(keys)) or {}
  for i, one in ipairs(found) do
    local text = texts[i]
    looked = looked + 1
    last_seen = text or last_seen
    if text and matches(text) then
      taken = taken + 1
      if counting then
        count_one(text)
      else
        output.add(answer, one[2], text, text:sub(1, 1) == "r" and call("HGET", LEASES, one[2]))
      end
      if taken == limit then return one[1] end
    end
  end
end

local function read(found)
  table.sort(found, function(a, b) return a[1] > b[1] end)
  return read_in_order(found)
end

-- The arrival numbers of a bucket are known, so that the newest runs are asked for first: nothing has to be sorted.
local function read_bucket(bucket)
  local first, seqs, found = bucket * BUCKET, {}, {}
  for seq = math.min(first + BUCKET, before) - 1, first, -1 do seqs[#seqs + 1] = seq end
  for i, id in ipairs(#seqs > 0 and call("HMGET", ROOT .. "o:" .. bucket, unpack(seqs)) or {}) do
    if id then found[#found + 1] = { seqs[i], id } end
  end
  return read_in_order(found), #found
end

-- If few runs are running, their leases find them faster than a read of all runs.
local function read_running()
  local found = {}
  for _, id in ipairs(call("HKEYS", LEASES)) do
    local readable, _, seq = pcall(cmsgpack.unpack_limit, call("GET", ROOT .. "r:" .. id), 1, 2)
    if readable and seq < before then found[#found + 1] = { seq, id } end
  end
  return read(found) or 0
end

-- The arrival numbers in the sorted sets `keys` that come before the place, sorted; of the first page only the last of each
-- set, which the server sorts. The second value is the number down to which all are known.
local function arrivals(keys)
  local seqs, horizon, most = {}, 0, 4 * limit
  for _, key_ in ipairs(keys) do
    local first = before == math.huge
    local some = first and call(sort, key_, "DESC", "LIMIT", 0, most) or call("ZRANGE", key_, 0, -1)
    if first and #some == most then horizon = math.max(horizon, tonumber(some[most])) end
    for _, text in ipairs(some) do
      local seq = tonumber(text)
      if seq < before then seqs[#seqs + 1] = seq end
    end
  end
  table.sort(seqs)
  return seqs, horizon
end

-- Ended runs that did not succeed are in sets of their own: a walk to the few failures would pass all other runs. Nil if there
-- are too many to sort.
local function read_unsuccessful()
  local keys, count, found, last = {}, 0, {}, nil
  for i, task in ipairs(tasks or call("ZRANGE", ROOT .. "histories", 0, -1)) do
    keys[i] = ROOT .. "failed:" .. task
    count = count + call("ZCARD", keys[i])
  end
  if count > FAILURES then return end
  local seqs, horizon = arrivals(keys)
  for i = #seqs, math.max(1, #seqs - READ_AT_ONCE + 1), -1 do
    if seqs[i] < horizon then break end
    last = seqs[i]
    found[#found + 1] = { last, call("HGET", ROOT .. "o:" .. math.floor(last / BUCKET), last) or "" }
    if #found == limit then
      local stopped = read_in_order(found)
      if stopped then return stopped end
      found = {}
    end
  end
  local more = last and last ~= seqs[1] or horizon > 0
  return read_in_order(found) or (more and last) or 0
end

-- The arrival numbers of block `number`, up to `last`, whose runs may have the key, in their order.
local function hashed(number, hash, last)
  local text, first, seqs = call("GET", ROOT .. "kh:" .. number) or "", number * KEY_BLOCK, {}
  for _, wanted_ in ipairs({ hash, NO_HASH }) do
    local at = text:find(wanted_, 1, true)
    while at do
      local seq = first + (at - 1) / 2
      if seq > last then break end
      if at % 2 == 1 then seqs[#seqs + 1] = seq end
      at = text:find(wanted_, at + 1, true)
    end
  end
  for seq = first + #text / 2, last do seqs[#seqs + 1] = seq end -- written by a version that knew no hashes
  table.sort(seqs)
  return seqs
end

-- Read the runs of the last bucket among the `seqs`, which they leave. Return the seq of the run that fills the page.
local function read_last(seqs)
  local bucket, some, found = math.floor(seqs[#seqs] / BUCKET), {}, {}
  while #seqs > 0 and seqs[#seqs] >= bucket * BUCKET do some[#some + 1] = table.remove(seqs) end
  for i, id in ipairs(call("HMGET", ROOT .. "o:" .. bucket, unpack(some))) do
    if id then found[#found + 1] = { some[i], id } end
  end
  return read_in_order(found), #some
end

-- The runs of a key are found by the hashes of keys.
local function read_key()
  local newest, oldest = call("ZREVRANGE", ROOT .. "o", 0, 0)[1], call("ZRANGE", ROOT .. "o", 0, 0)[1]
  if not newest then return 0 end
  local hash, scanned, from = key_hash(key), 0, math.min(before, (newest + 1) * BUCKET) - 1
  for _ = 1, KEY_BLOCKS do
    local number = math.floor(from / KEY_BLOCK)
    local seqs = hashed(number, hash, from)
    while #seqs > 0 do
      local last, stopped, count = seqs[#seqs], read_last(seqs)
      if stopped then return stopped end
      scanned = scanned + count
      if scanned >= READ_AT_ONCE then return math.floor(last / BUCKET) * BUCKET end
    end
    from = number * KEY_BLOCK - 1
    if from < oldest * BUCKET then return 0 end
  end
  return from + 1
end

local function read_group()
  local from, found = before == math.huge and "+inf" or before - 1, {}
  local some =
    call("ZREVRANGEBYSCORE", ROOT .. "g:" .. group, from, "-inf", "WITHSCORES", "LIMIT", 0, READ_AT_ONCE)
  for i = 1, #some, 2 do found[#found + 1] = { tonumber(some[i + 1]), some[i] } end
  return read(found) or (#found == READ_AT_ONCE and found[#found][1]) or 0
end

local function read_back()
  local scanned = 0
  while scanned < READ_AT_ONCE do
    local from = before == math.huge and "+inf" or math.floor((before - 1) / BUCKET)
    local bucket = call("ZREVRANGEBYSCORE", ROOT .. "o", from, "-inf", "LIMIT", 0, 1)[1]
    if not bucket then return 0 end
    local stopped, read_here = read_bucket(bucket)
    if stopped then return stopped end
    scanned = scanned + read_here + 1
    before = tonumber(bucket) * BUCKET
  end
  return before
end

-- The ended runs of the sorted set `key` behind the place, the last end first: pairs of an end and an arrival number.
-- Members with one score are in the order of arrival. The second value says whether the set has more.
local function ended_in(key, most)
  local found, skipped = {}, 0
  local from, at = place[1] or "+inf", tonumber(place[1] or math.huge)
  while true do
    local some = call("ZREVRANGEBYSCORE", key, from, "-inf", "WITHSCORES", "LIMIT", skipped, most)
    for i = 1, #some, 2 do
      local seq, score = tonumber(some[i]), tonumber(some[i + 1])
      if score < at or seq < before then found[#found + 1] = { score, seq } end
    end
    if #some < 2 * most then return found, false end
    if #found > 0 then return found, true end
    skipped = skipped + most
  end
end

local function later(a, b) return a[1] > b[1] or (a[1] == b[1] and a[2] > b[2]) end

-- Merge the histories of the tasks. Of each, only the last ends are read; behind the earliest of these, another run of that
-- task may come first.
local function read_ended()
  local keys = {}
  for _, task in ipairs(tasks or call("ZRANGE", ROOT .. "histories", 0, -1)) do
    if states:find("s", 1, true) then keys[#keys + 1] = ROOT .. "ended:" .. task end
    if states:find("[fc]") then keys[#keys + 1] = ROOT .. "failed:" .. task end
  end
  local all, horizon = {}, false
  local most = math.max(10, math.min(limit, math.ceil(READ_AT_ONCE / math.max(1, #keys))))
  for _, key_ in ipairs(keys) do
    local some, more = ended_in(key_, most)
    for _, one in ipairs(some) do all[#all + 1] = one end
    if more and (not horizon or later(some[#some], horizon)) then horizon = some[#some] end
  end
  table.sort(all, later)
  local found, last = {}, nil
  for _, one in ipairs(all) do
    if (horizon and later(horizon, one)) or #found == READ_AT_ONCE then break end
    found[#found + 1] = { one, call("HGET", ROOT .. "o:" .. math.floor(one[2] / BUCKET), one[2]) or "" }
    last = one
  end
  local stopped = read_in_order(found) or ((horizon or #found < #all) and last)
  return stopped and { string.format("%.17g", stopped[1]), stopped[2] } or false
end

local function sooner(a, b) return later(b, a) end

-- Whether a run that is due at `due` comes behind the place.
local function is_behind(due, seq)
  if not place[1] then return true end
  local at = tonumber(place[1])
  return due > at or (due == at and seq > place[2])
end

-- The first runs of `lane` behind the place: pairs of a due time and an arrival number, and whether the lane has more.
local function due_in(lane, most)
  local found, skipped = {}, 0
  while true do
    local some = call("ZRANGEBYSCORE", ROOT .. "q:" .. lane, place[1] or "-inf", "+inf", "WITHSCORES", "LIMIT", skipped, most)
    for i = 1, #some, 2 do
      local seq, due = tonumber(some[i]), tonumber(some[i + 1])
      if is_behind(due, seq) then found[#found + 1] = { due, seq } end
    end
    if #some < 2 * most then return found, false end
    if #found > 0 then return found, true end
    skipped = skipped + most
  end
end

local function all_tasks()
  local found, known = {}, {}
  for _, name in ipairs(call("HKEYS", ROOT .. "counts")) do
    local task = name:sub(3)
    if not known[task] then found[#found + 1] = task end
    known[task] = true
  end
  return found
end

-- Add the runs of `task` that are parked to `found`. Their places have their due times.
local function add_parked(found, task)
  local names = call("SMEMBERS", ROOT .. "parks:" .. task)
  names[#names + 1] = task
  for _, name in ipairs(names) do
    for _, its_key in ipairs(call("ZRANGE", ROOT .. "keys:" .. name, 0, -1)) do
      for _, at in ipairs(call("ZRANGE", ROOT .. "parked:" .. pair(name, its_key), 0, OUTSIDE - math.min(OUTSIDE, #found))) do
        local due, seq = tonumber(at:sub(4, 20)), tonumber(at:sub(21))
        if is_behind(due, seq) then found[#found + 1] = { due, seq } end
      end
    end
  end
end

-- The runs that are in no lane: those that run, are paused, parked or wait for others. Nil if there are too many to sort.
local function outside_lanes()
  local found, others = {}, states:find("r", 1, true) and call("HKEYS", LEASES) or {}
  for _, task in ipairs(tasks or all_tasks()) do
    if states:find("q", 1, true) then add_parked(found, task) end
    for _, id in ipairs(call("ZRANGE", ROOT .. "held:" .. task, 0, OUTSIDE)) do others[#others + 1] = id end
    if #found + #others > OUTSIDE then return end
  end
  for first = 1, #others, READ_AT_ONCE do
    local keys = {}
    for i = first, math.min(#others, first + READ_AT_ONCE - 1) do keys[#keys + 1] = ROOT .. "r:" .. others[i] end
    for _, text in ipairs(call("MGET", unpack(keys))) do
      local readable, _, seq, created, due = pcall(cmsgpack.unpack_limit, text, 4, 2)
      if readable and is_behind(due or created, seq) then found[#found + 1] = { due or created, seq } end
    end
  end
  return found
end

-- Merge the lanes and the runs outside of them, the first due first.
local function read_due()
  local all, horizon, names = outside_lanes(), false, {}
  if not all then return "many" end
  for _, lane in ipairs(states:find("q", 1, true) and call("ZRANGE", ROOT .. "heads", 0, -1) or {}) do
    if not tasks or wanted[lane:match("^%-?%d+!?:([^%z]*)")] then names[#names + 1] = lane end
  end
  local most = math.max(10, math.min(limit, math.ceil(READ_AT_ONCE / math.max(1, #names))))
  for _, lane in ipairs(names) do
    local some, more = due_in(lane, most)
    for _, one in ipairs(some) do all[#all + 1] = one end
    if more and (not horizon or sooner(some[#some], horizon)) then horizon = some[#some] end
  end
  table.sort(all, sooner)
  local found, last = {}, nil
  for _, one in ipairs(all) do
    if (horizon and sooner(horizon, one)) or #found == READ_AT_ONCE then break end
    found[#found + 1] = { one, call("HGET", ROOT .. "o:" .. math.floor(one[2] / BUCKET), one[2]) or "" }
    last = one
  end
  local stopped = read_in_order(found) or ((horizon or #found < #all) and last)
  return stopped and { string.format("%.17g", stopped[1]), stopped[2] } or false
end

local next_ = 0
if ids then
  output.add_all(answer, ids)
elseif order == "finished" then
  return { instant(now), read_ended(), looked, answer }
elseif order == "due" then
  local following = read_due()
  if following == "many" then return { instant(now), false, looked, "many" } end
  return { instant(now), following, looked, answer }
elseif group then
  next_ = read_group()
elseif states == "r" and call("HLEN", LEASES) <= READ_AT_ONCE then
  next_ = read_running()
elseif key then
  next_ = read_key()
else
  next_ = not states:find("[^fc]") and read_unsuccessful() or read_back()
end
for name, count in pairs(counts) do
  answer[#answer + 1] = name
  answer[#answer + 1] = count
end
local readable, _, _, created = pcall(cmsgpack.unpack_limit, last_seen or "", 2, 2)
return { instant(now), next_ > 0 and { false, next_ } or false, looked, answer, readable and created and instant(created) }
