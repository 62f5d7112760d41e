-- with: clock
-- depths: what is unfinished, counted.
return { instant(now), call("HGETALL", ROOT .. "counts") }
