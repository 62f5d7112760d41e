-- twin: rota/stores/charts.py
-- Charts: what workers report. A tally is three lists: its numbers, and its waits and durations by their buckets.
local charts = {}

local function add_to(slot, name, tally)
  local readable, known = pcall(cmsgpack.unpack, call("HGET", slot, name))
  if not readable or type(known) ~= "table" then known = { {}, {}, {} } end -- there is none, or nobody can read it
  for part = 1, 3 do
    for place, number in pairs(tally[part]) do known[part][place] = (known[part][place] or 0) + number end
  end
  call("HSET", slot, name, cmsgpack.pack(known))
end

-- Add the tallies of a report: a list of task, origin, tally, task, origin, tally ...
function charts.add(tallies)
  if #tallies == 0 then return end
  local minute, slots = math.floor(now / 60), {}
  for _, kept in ipairs({ SLOTS_KEPT }) do
    local begin = minute - minute % kept[1]
    slots[#slots + 1] = ROOT .. "s:" .. kept[1] .. ":" .. begin
    call("ZADD", ROOT .. "slots:" .. kept[1], begin, begin)
  end
  for i = 1, #tallies, 3 do
    local task, origin, tally = tallies[i], tallies[i + 1], tallies[i + 2]
    add_to(ROOT .. "s:0:0", pair(task, ""), tally)
    for _, slot in ipairs(slots) do add_to(slot, pair(task, origin), tally) end
  end
end

local function add_total(what, name, reason, number)
  local field = pair(what, pair(name, reason))
  if what ~= "succeeded_at" then
    call("HINCRBY", ROOT .. "totals", field, number)
  elseif number > tonumber(call("HGET", ROOT .. "totals", field) or 0) then
    call("HSET", ROOT .. "totals", field, number)
  end
  if name ~= "" and name ~= "_other" then call("ZADD", ROOT .. "totalled", now, field) end
end

-- Add the totals of a report: a list of what, name, reason, number, what, name, reason, number ...
function charts.count(totals)
  for i = 1, #totals, 4 do add_total(totals[i], totals[i + 1], totals[i + 2], totals[i + 3]) end
end

-- The two parts of a pair.
local function parts(text)
  local length = text:match("^%d+")
  local first = #length + 1
  return text:sub(first + 1, first + length), text:sub(first + length + 1)
end

-- Add the total of `field`, which has not changed for long, to the one of _other.
function charts.forget_total(field)
  local what, rest = parts(field)
  local _, reason = parts(rest)
  add_total(what, "_other", reason, tonumber(call("HGET", ROOT .. "totals", field)))
  call("HDEL", ROOT .. "totals", field)
  call("ZREM", ROOT .. "totalled", field)
end
