-- with: clock output
-- twin: rota/stores/redis/queries.py
-- runs: those with these ids, or those that match, newest first. One script reads a bounded number. Answers the time, the
-- arrival number before which to read on (0: there are no more), and the runs.
local request = cmsgpack.unpack(ARGV[3])
local ids, states, task, key, limit, before, group =
  request[1], request[2], request[3], request[4], request[5], request[6] or math.huge, request[7]
local LEASES = ROOT .. "leases"
local answer = {}

local function matches(text)
  if not states:find(text:sub(1, 1), 1, true) then return false end
  if not task and not key then return true end
  local readable, _, _, _, _, _, its_task, its_key, its_unique_key = pcall(cmsgpack.unpack_limit, text, 7, 2)
  return readable and (not task or its_task == task) and (not key or its_key == key or its_unique_key == key)
end

-- Add the runs `found`, pairs of (seq, id), that match to the answer, newest first. Return the seq of the run that fills the
-- page.
local function read(found)
  table.sort(found, function(a, b) return a[1] > b[1] end)
  local keys = {}
  for i, one in ipairs(found) do keys[i] = ROOT .. "r:" .. one[2] end
  local texts = #keys > 0 and call("MGET", unpack(keys)) or {}
  for i, one in ipairs(found) do
    local text = texts[i]
    if text and matches(text) then
      output.add(answer, one[2], text, text:sub(1, 1) == "r" and call("HGET", LEASES, one[2]))
      if #answer / 4 == limit then return one[1] end
    end
  end
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

local next_ = 0
if ids then
  output.add_all(answer, ids)
elseif group then
  next_ = read_group()
elseif states == "r" and call("HLEN", LEASES) <= READ_AT_ONCE then
  next_ = read_running()
else
  next_ = read_back()
end
return { instant(now), next_, answer }
