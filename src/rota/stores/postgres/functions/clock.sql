-- twin: rota/domain/run.py
-- The store's time.

-- The first instant on the grid of 10 microseconds that is not before `now` + `seconds`.
CREATE OR REPLACE FUNCTION after(now float8, seconds float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN round((now + seconds) * {PER_SECOND}::float8) / {PER_SECOND}::float8 >= now + seconds
                THEN round((now + seconds) * {PER_SECOND}::float8) / {PER_SECOND}::float8
                ELSE (round((now + seconds) * {PER_SECOND}::float8) + 1) / {PER_SECOND}::float8 END
$$;

-- The store's time: the latest of the server's clock, of `seen` (the latest time that the caller has seen) and of
-- clock.latest. So the store's time does not go back when somebody sets the server's clock back. A verb that passes `keep`
-- writes its time into clock.latest, about once a second. No verb waits for the lock on that row: a verb that finds the row
-- locked does not write.
-- A time that is more than FAR_AHEAD (an hour) after the server's clock is ignored: the clock was wrong when the time was
-- taken, and to stop the store's time for more than an hour would be worse than to let it go back.
CREATE OR REPLACE FUNCTION now_of(skew float8, seen float8, keep boolean) RETURNS float8
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    here float8 := round((extract(epoch FROM clock_timestamp())::float8 + skew) * {PER_SECOND}::float8) / {PER_SECOND}::float8;
    known float8 := (SELECT latest FROM clock);
BEGIN
    IF keep AND here > known + (skew = 0)::integer THEN
        UPDATE clock SET latest = here WHERE ctid = (SELECT ctid FROM clock FOR UPDATE SKIP LOCKED);
    END IF;
    IF known > here AND known < here + {FAR_AHEAD} THEN here := known; END IF;
    IF seen > here AND seen < here + {FAR_AHEAD} THEN here := seen; END IF;
    RETURN here;
END $$;
