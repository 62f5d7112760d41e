-- with: clock book events policies holds hints schedules forget charts
-- twin: rota/stores/retention.py
-- sweep: expire runs that are too late to start, and forget what ended long ago; a bounded number in one script.
local request = cmsgpack.unpack(ARGV[3])
local succeeded, failed, most, least = request[1], request[2], request[3], request[4]
local more = false

local function oldest(set, before)
  local found = call("ZRANGEBYSCORE", set, "-inf", before, "LIMIT", 0, FORGOTTEN_AT_ONCE)
  if #found == FORGOTTEN_AT_ONCE then more = true end
  return found
end

local function forget_workers()
  local gone = oldest(SEEN, now - WORKER_MEMORY)
  for _, worker in ipairs(gone) do
    local row = call("HGET", ROOT .. "workers", worker)
    if row then call("ZREM", ROOT .. "i:" .. cmsgpack.unpack(row)[2], worker) end
    call("HDEL", ROOT .. "workers", worker)
    call("HDEL", ROOT .. "reports", worker)
    call("DEL", ROOT .. "batch:" .. worker)
    call("ZREM", SEEN, worker)
  end
  if #gone == 0 then return end
  local used = {}
  for _, row in ipairs(call("HVALS", ROOT .. "workers")) do used[cmsgpack.unpack(row)[2]] = true end
  for _, crew in ipairs(call("HKEYS", ROOT .. "crews")) do
    if not used[crew] then
      call("HDEL", ROOT .. "crews", crew)
      call("DEL", ROOT .. "c:" .. crew, ROOT .. "cq:" .. crew, ROOT .. "i:" .. crew)
      call("SREM", IDLE, crew)
    end
  end
end

local function forget_rows(hash, index, memory)
  local gone = oldest(index, now - memory)
  book.send("HDEL", hash, gone)
  book.send("ZREM", index, gone)
end

local function forget_marks()
  for _, task in ipairs(call("ZRANGE", ROOT .. "marked", 0, -1)) do
    local index, spec = ROOT .. "marks:" .. task, policies.spec_of(task)
    forget_rows(MARKS, index, spec and spec[S_MEMORY] or MARK_MEMORY)
    if call("EXISTS", index) == 0 then call("ZREM", ROOT .. "marked", task) end
  end
end

-- The turns of tasks that have no runs waiting.
local function forget_turns()
  for _, name in ipairs(call("HKEYS", ROOT .. "turns")) do
    local task = name:match("^%-?%d+:([^%z]*)")
    local waiting = call("HMGET", COUNTS, "q:" .. task, "p:" .. task)
    if not waiting[1] and not waiting[2] then call("HDEL", ROOT .. "turns", name) end
  end
end

local function forget_others()
  forget_marks()
  forget_turns()
  forget_rows(DECISIONS, ROOT .. "decided", MARK_MEMORY)
  forget_rows(IDS, IDS_OVER, OWN_ID_MEMORY)
  for _, token in ipairs(oldest(ROOT .. "plans", now - ID_MEMORY)) do -- of planners that died
    call("UNLINK", ROOT .. "plan:" .. token, ROOT .. "planned:" .. token)
    call("ZREM", ROOT .. "plans", token)
  end
  for _, id in ipairs(oldest(OVER, now - MARK_MEMORY)) do schedules.drop_schedule(id) end
  for _, task in ipairs(call("ZRANGE", ROOT .. "rated", 0, -1)) do
    local name = ROOT .. "rate:" .. task
    call("ZREMRANGEBYSCORE", name, "-inf", now)
    if call("EXISTS", name) == 0 then call("ZREM", ROOT .. "rated", task) end
  end
  for _, minute in ipairs(oldest(ROOT .. "minutes", math.floor(now / 60) - MINUTES_KEPT)) do -- those of earlier versions
    call("DEL", ROOT .. "m:" .. minute)
    call("ZREM", ROOT .. "minutes", minute)
  end
  for _, kept in ipairs({ SLOTS_KEPT }) do
    local index = ROOT .. "slots:" .. kept[1]
    for _, begin in ipairs(oldest(index, math.floor(now / 60) - kept[2])) do
      call("DEL", ROOT .. "s:" .. kept[1] .. ":" .. begin)
      call("ZREM", index, begin)
    end
  end
  for _, field in ipairs(oldest(ROOT .. "totalled", now - TOTAL_MEMORY)) do charts.forget_total(field) end
end

-- Only a bounded number: MAXLEN keeps the number of all events small.
local function forget_events()
  local stream, cut = ROOT .. "events", nil
  local first = call("XRANGE", stream, "-", "+", "COUNT", 1)[1]
  if not first or cmsgpack.unpack(first[2][2])[1] > now - EVENT_MEMORY then return end
  local some = call("XRANGE", stream, "-", "+", "COUNT", FORGOTTEN_AT_ONCE)
  for _, entry in ipairs(some) do
    if cmsgpack.unpack(entry[2][2])[1] > now - EVENT_MEMORY then break end
    cut = tonumber(entry[1]:match("^%d+"))
  end
  if call("XTRIM", stream, "MINID", string.format("%.0f", cut + 1)) == FORGOTTEN_AT_ONCE then more = true end
end

local function nth(set, index)
  local found = call("ZREVRANGE", set, index, index, "WITHSCORES")
  return { tonumber(found[2]), found[1] }
end

local function is_newer(a, b)
  return a[1] > b[1] or (a[1] == b[1] and a[2] > b[2])
end

-- The newest ended run of a task that is not among the `keep` newest ones. Both sets are in the order of time, so a binary
-- search finds how many (i) of the k = keep + 1 newest runs are in set `one`.
local function beyond(one, two, keep)
  local k, in_one, in_two = keep + 1, call("ZCARD", one), call("ZCARD", two)
  if in_one + in_two < k then return end
  local low, high = math.max(0, k - in_two), math.min(k, in_one)
  while low < high do
    local i = math.floor((low + high) / 2)
    if k - i > 0 and is_newer(nth(one, i), nth(two, k - i - 1)) then low = i + 1 else high = i end
  end
  local a, b = low > 0 and nth(one, low - 1), k - low > 0 and nth(two, k - low - 1)
  if a and b then return is_newer(a, b) and b or a end
  return a or b
end

local function within(run, cut)
  return cut and not is_newer(run, cut)
end

-- Forget the fans whose gather has ended. The gather of a new fan may not be there yet. Return the others; nil if none is left.
local function forget_fans()
  local left
  for _, id in ipairs(call("HKEYS", ROOT .. "fans")) do
    local state = call("GETRANGE", ROOT .. "r:" .. id .. ".all", 0, 0)
    local is_new = state == "" and holds.fan(id)[F_CREATED_AT] > now - ID_MEMORY
    if state:find("[sfc]") or (state == "" and not is_new) then
      call("HDEL", ROOT .. "fans", id)
    else
      left = left or {}
      left[id] = true
    end
  end
  return left
end

local fans_left

-- Is the run `id`, which has ended, the child of a fan whose gather has not ended?
local function is_kept(id)
  local fan = id:match("^(.+)%.%d+$")
  return fan and fans_left[fan]
end

-- Of `found`, members of a history with their scores, those that may be forgotten.
local function without_kept(found)
  local places, left = {}, {}
  for i = 1, #found, 2 do places[#places + 1] = found[i] end
  local names = book.ids_of(places)
  for i = 1, #found, 2 do
    if not is_kept(names[tonumber(found[i])] or "") then
      left[#left + 1], left[#left + 2] = found[i], found[i + 1]
    end
  end
  return left
end

-- The oldest members of a history, `most` at most, without children that are kept.
local function oldest_of(set, most)
  local first, left = 0, {}
  repeat
    local found = call("ZRANGE", set, first, first + most - 1, "WITHSCORES")
    left = fans_left and without_kept(found) or found
    first = first + most
  until #left > 0 or #found < 2 * most
  return left
end

local function forget_in(set, age, too_many, few, budget)
  local places, ended = {}, oldest_of(set, budget)
  for i = 1, #ended, 2 do
    local run = { tonumber(ended[i + 1]), ended[i] }
    local old = run[1] <= now - age and within(run, few)
    if run[1] > now - ID_MEMORY or not (old or within(run, too_many)) then break end
    places[#places + 1] = ended[i]
  end
  if #places == 0 then return 0 end
  forget.runs(set, places)
  return #places
end

-- What a task keeps of its ended runs: what its spec says, else what the request says.
local function kept_by(task)
  local spec = policies.spec_of(task)
  local own = spec and spec[S_TEXT]:find('"keep":', 1, true) and cjson.decode(spec[S_TEXT]).keep
  if type(own) ~= "table" then return succeeded, failed, most, least end
  return own.succeeded, own.failed, own.most, own.least
end

local function forget_runs()
  local left = FORGOTTEN_AT_ONCE
  for _, task in ipairs(call("ZRANGE", ROOT .. "histories", 0, -1)) do
    local good, bad = ROOT .. "ended:" .. task, ROOT .. "failed:" .. task
    local good_age, bad_age, at_most, at_least = kept_by(task)
    local too_many, few = beyond(good, bad, at_most), beyond(good, bad, at_least)
    left = left - forget_in(good, good_age, too_many, few, left)
    if left > 0 then left = left - forget_in(bad, bad_age, too_many, few, left) end
    if call("EXISTS", good, bad) == 0 then call("ZREM", ROOT .. "histories", task) end
    if left <= 0 then
      more = true
      break
    end
  end
  return FORGOTTEN_AT_ONCE - left
end

local expired = holds.expire_due()
if #expired == EXPIRED_AT_ONCE then more = true end
if holds.release_more() then more = true end
book.write_all() -- forget_runs must see the runs that have just expired
forget_workers()
forget_others()
forget_events()
fans_left = forget_fans()
local forgotten = forget_runs()
hints.conclude()
return { instant(now), expired, forgotten, more and 1 or 0 }
