-- with: clock
-- twin: rota/stores/redis/queries.py
-- due: the numbers of due runs, lane by lane. A lane of all shares counts the runs of each of its shares.
local found = {}
for _, lane in ipairs(call("ZRANGEBYSCORE", ROOT .. "heads", "-inf", now)) do
  found[#found + 1] = lane
  found[#found + 1] = call("ZCOUNT", ROOT .. "q:" .. lane, "-inf", now)
end
return { instant(now), found }
