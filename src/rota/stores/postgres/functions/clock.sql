-- twin: rota/domain/run.py
-- The store's time.

-- The first instant on the grid of 10 microseconds that is not before `now` + `seconds`.
CREATE OR REPLACE FUNCTION after(now float8, seconds float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN round((now + seconds) * {PER_SECOND}::float8) / {PER_SECOND}::float8 >= now + seconds
                THEN round((now + seconds) * {PER_SECOND}::float8) / {PER_SECOND}::float8
                ELSE (round((now + seconds) * {PER_SECOND}::float8) + 1) / {PER_SECOND}::float8 END
$$;

-- The store's time: the latest of the server's clock, of `seen` (the latest time that the caller has seen) and of
-- the sequence `clock`. So the store's time does not go back when somebody sets the server's clock back. A verb that passes
-- `keep` may write: it notes that first (note_write), and sets the sequence, at most twenty times a second. A sequence has one
-- version, which no transaction keeps: a row that is updated so often would leave dead rows behind a long transaction.
-- A time that is more than FAR_AHEAD (an hour) after the server's clock is ignored: the clock was wrong when the time was
-- taken, and to stop the store's time for more than an hour would be worse than to let it go back. Floors that were raised by
-- the wrong clock go, too; a floor that another verb has locked goes with the next verb.
CREATE OR REPLACE FUNCTION now_of(skew float8, seen float8, keep boolean) RETURNS float8
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    here float8;
    known float8;
    noted boolean;
BEGIN
    IF keep THEN noted := note_write(extract(epoch FROM clock_timestamp())::float8 + skew); END IF;
    here := round((extract(epoch FROM clock_timestamp())::float8 + skew) * {PER_SECOND}::float8) / {PER_SECOND}::float8;
    known := (SELECT c.last_value FROM clock c) / {PER_SECOND}::float8;
    IF keep AND here > known + 0.05 * (skew = 0)::integer THEN
        PERFORM setval('clock', (here * {PER_SECOND})::bigint);
    ELSIF keep AND known >= here + {FAR_AHEAD} THEN
        DELETE FROM floors WHERE ctid = ANY(ARRAY(SELECT f.ctid FROM floors f FOR UPDATE SKIP LOCKED));
        IF NOT EXISTS (SELECT FROM floors) THEN PERFORM setval('clock', (here * {PER_SECOND})::bigint); END IF;
    END IF;
    IF known > here AND known < here + {FAR_AHEAD} THEN here := known; END IF;
    IF seen > here AND seen < here + {FAR_AHEAD} THEN here := seen; END IF;
    RETURN here;
END $$;
