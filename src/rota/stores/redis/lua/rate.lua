-- with: clock
-- twin: rota/stores/redis/queries.py
-- rate: when the bucket of a task, or of one of its keys, is full again.
local request = cmsgpack.unpack(ARGV[3])
return { instant(now), call("ZSCORE", ROOT .. "rate:" .. request[1], request[2]) or "" }
