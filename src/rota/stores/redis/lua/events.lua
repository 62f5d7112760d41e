-- with: clock
-- twin: rota/stores/redis/events.py
-- events: events after a number, and their numbers: the last forgotten one, the last one, and whether the event at the
-- cursor is still the one that the reader has seen. A failover may lose events and use their numbers again: so a cursor also
-- has the time of its event.
local request = cmsgpack.unpack(ARGV[3])
local start, at, limit = request[1], request[2], request[3]
local EVENTS, LAST = ROOT .. "events", ROOT .. "event"

local function numbered(number) return string.format("%.0f", number) end

local function units(text)
  return math.floor(cmsgpack.unpack(text)[1] * PER_SECOND + 0.5)
end

local last = tonumber(call("GET", LAST) or 0)
if not recording then -- nothing was recorded since: no cursor from before is of use
  last = last > 0 and last + 1 or math.floor(now * PER_SECOND)
  call("SET", LAST, numbered(last))
  call("UNLINK", EVENTS)
end
if not recording or recording - now < SUBSCRIBED / 2 then call("SET", ROOT .. "record", instant(now + SUBSCRIBED)) end
local first = call("XRANGE", EVENTS, "-", "+", "COUNT", 1)[1]
local gone = first and tonumber(first[1]:match("^%d+")) - 1 or last
local same = 1
if not start then
  start = last
elseif start < gone or start > last then
  start = gone
elseif at > 0 then
  local seen = call("XRANGE", EVENTS, numbered(start), numbered(start))[1]
  if seen and units(seen[2][2]) ~= at then same, start = 0, gone end
end
local found = {}
for _, entry in ipairs(call("XRANGE", EVENTS, numbered(start + 1), "+", "COUNT", limit)) do
  found[#found + 1] = entry[1]
  found[#found + 1] = entry[2][2]
end
return { instant(now), numbered(gone), numbered(last), same, found }
