-- twin: rota/domain/run.py
-- The store's time.

-- An instant so many seconds later on the grid of 10 microseconds, never rounded to an earlier one.
CREATE OR REPLACE FUNCTION after(now float8, seconds float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN round((now + seconds) * {PER_SECOND}::float8) / {PER_SECOND}::float8 >= now + seconds
                THEN round((now + seconds) * {PER_SECOND}::float8) / {PER_SECOND}::float8
                ELSE (round((now + seconds) * {PER_SECOND}::float8) + 1) / {PER_SECOND}::float8 END
$$;

-- The store's time: the server's clock, which may be set back. `seen` is the latest that the caller has seen, `latest`
-- what any verb has written down, about once a second; nobody waits for that row. A clock that once stood more than an
-- hour ahead was wrong: the store's time goes back then, because standing still until it is true would be worse.
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
