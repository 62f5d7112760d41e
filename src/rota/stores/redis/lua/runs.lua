-- with: clock output
-- twin: rota/stores/redis/queries.py
-- runs: those with these ids, or those that match, newest first, or the last end first. One script reads a bounded number.
-- Answers the time; the place before which to read on, the end and the arrival number of a run (false: there are no more);
-- how many runs it looked at; and the runs.
local request = cmsgpack.unpack(ARGV[3])
local ids, states, tasks, key, limit, group, by_end =
  request[1], request[2], request[3], request[4], request[5], request[7], request[8]
local place = request[6] or {}
local before = place[2] or math.huge
local LEASES = ROOT .. "leases"
local answer, looked, wanted = {}, 0, {}
for _, task in ipairs(tasks or {}) do wanted[task] = true end

local function matches(text)
  if not states:find(text:sub(1, 1), 1, true) then return false end
  if not tasks and not key then return true end
  local readable, _, _, _, _, _, its_task, its_key, its_unique_key = pcall(cmsgpack.unpack_limit, text, 7, 2)
  return readable and (not tasks or wanted[its_task]) and (not key or its_key == key or its_unique_key == key)
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
    if text and matches(text) then
      output.add(answer, one[2], text, text:sub(1, 1) == "r" and call("HGET", LEASES, one[2]))
      if #answer / 4 == limit then return one[1] end
    end
  end
end

local function read(found)
  table.sort(found, function(a, b) return a[1] > b[1] end)
  return read_in_order(found)
end

local function read_bucket(bucket)
  local all, found = call("HGETALL", ROOT .. "o:" .. bucket), {}
  for i = 1, #all, 2 do
    if tonumber(all[i]) < before then found[#found + 1] = { tonumber(all[i]), all[i + 1] } end
  end
  return read(found), #found
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

local next_ = 0
if ids then
  output.add_all(answer, ids)
elseif by_end then
  return { instant(now), read_ended(), looked, answer }
elseif group then
  next_ = read_group()
elseif states == "r" and call("HLEN", LEASES) <= READ_AT_ONCE then
  next_ = read_running()
else
  next_ = read_back()
end
return { instant(now), next_ > 0 and { false, next_ } or false, looked, answer }
