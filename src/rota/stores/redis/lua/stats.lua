-- with: clock
-- twin: rota/stores/redis/queries.py
-- stats: the counts of the last minutes, or those of the minute TOTAL; each minute is a list of name, number, name, number ...
local answer = { instant(now) }
if ARGV[3] == "total" then return { instant(now), { TOTAL, call("HGETALL", ROOT .. "m:" .. TOTAL) } } end
local first = math.floor(now / 60) - tonumber(ARGV[3])
for _, minute in ipairs(call("ZRANGEBYSCORE", ROOT .. "minutes", "(" .. first, "+inf")) do
  answer[#answer + 1] = { minute, call("HGETALL", ROOT .. "m:" .. minute) }
end
return answer
