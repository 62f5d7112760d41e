-- with: clock
-- twin: rota/stores/redis/reading.py
-- depths: what is unfinished, counted.
return { instant(now), call("HGETALL", ROOT .. "counts") }
