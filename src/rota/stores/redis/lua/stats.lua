-- with: clock
-- twin: rota/stores/redis/queries.py
-- stats: the slots of ARGV[3] minutes in the last ARGV[4] minutes; for slots of 0 minutes, the one since the store was made.
-- Each slot is its first minute and a list of name, tally, name, tally ...
local every, answer, begins = tonumber(ARGV[3]), { instant(now) }, { 0 }
if every > 0 then
  local first = math.floor((math.floor(now / 60) - tonumber(ARGV[4]) + 1) / every) * every
  begins = call("ZRANGEBYSCORE", ROOT .. "slots:" .. every, first, "+inf")
end
for _, begin in ipairs(begins) do
  answer[#answer + 1] = { begin, call("HGETALL", ROOT .. "s:" .. every .. ":" .. begin) }
end
return answer
