-- with: clock
-- twin: rota/stores/redis/queries.py
-- due: the due runs, lane by lane: how many there are, and since when the first is due. A lane of all shares counts the runs
-- of each of its shares.
local found, heads = {}, call("ZRANGEBYSCORE", ROOT .. "heads", "-inf", now, "WITHSCORES")
for i = 1, #heads, 2 do
  found[#found + 1] = heads[i]
  found[#found + 1] = call("ZCOUNT", ROOT .. "q:" .. heads[i], "-inf", now)
  found[#found + 1] = heads[i + 1]
end
return { instant(now), found }
