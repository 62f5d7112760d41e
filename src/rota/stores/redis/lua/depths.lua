-- with: clock
-- twin: rota/stores/redis/queries.py
-- depths: what is unfinished, counted.
return { instant(now), call("HGETALL", ROOT .. "counts") }
