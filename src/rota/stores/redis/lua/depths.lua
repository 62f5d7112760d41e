-- with: clock
-- twin: rota/stores/redis/queries.py
-- depths: the numbers of unfinished runs.
return { instant(now), call("HGETALL", ROOT .. "counts") }
