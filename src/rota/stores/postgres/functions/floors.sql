-- twin: rota/stores/memory/lanes.py
-- Floors: where a look through an index begins, so that its cost does not grow with the dead rows.
--
-- Work is taken from the low end of an index: the runs that are due, the leases that have lapsed, the schedules that fire.
-- The rows that were taken stay there, dead, until VACUUM may remove them, and VACUUM may not while any transaction of this
-- database is older. A look that began at the low end would walk over all of them. So a look begins at the floor of the index:
-- every live row is at the floor or above it.
--
-- The kinds of floors: 0 a lane of the queue (lane_at), 1 queue_expiring (expires_at), 2 leases_until (until),
-- 3 schedules_due (look_at), 4 the ended runs of a task (finished_at), 5 rates_opening (opens_at). Claims and sweeps raise floors. Three rules keep every
-- row at its floor or above:
--   1. A verb notes the time at which it begins to write (note_write) by an advisory lock, which ends with its transaction.
--      Any process can read these locks in pg_locks, so the time of the oldest write under way is known (horizon).
--   2. A row comes in at the present time or later. A run that was due before (it was parked, paused, or waited for another
--      run) comes in at lane_at = greatest(due_at, intended): in front of all runs of its lane, but not below its floor.
--   3. A floor is raised in two transactions. The first writes the new floor as `intended`. The second makes it the floor,
--      if no live row is below it and no write under way began before it. A write that began after the first transaction
--      has read `intended`.
--
-- A floor changes often, so its rows die often, too: they are read by version, the latest first.

-- The floor of an index; rows below it are dead.
CREATE OR REPLACE FUNCTION floor_of(which smallint, of_task text, level smallint, in_queue text DEFAULT '') RETURNS float8
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT f.floor FROM floors f
                     WHERE f.kind = which AND f.task = of_task AND f.queue = in_queue AND f.priority = level
                     ORDER BY f.version DESC LIMIT 1), '-Infinity');
END $$;

-- The number of the advisory locks of this schema: one class for writes under way, one for whoever raises floors.
CREATE OR REPLACE FUNCTION lock_class(what text) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT hashtext('rota.' || what || '.' || current_schema())
$$;

-- Note that this transaction may add rows from the instant `at` on. The lock has the instant as its number, in hundredths of
-- a second, modulo 2^32. It is shared, and nobody takes it alone: no verb waits for it. An assignment costs less than PERFORM.
CREATE OR REPLACE FUNCTION note_write(at float8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    number bigint := floor(at * 100)::bigint & 4294967295;
BEGIN
    IF number >= 2147483648 THEN number := number - 4294967296; END IF;
    RETURN pg_advisory_xact_lock_shared(lock_class('writes'), number::integer) IS NOT NULL;
END $$;

-- The earliest instant that note_write can take. It stays the same for 100 days, so that runs that were due before it keep their
-- order: they come in at one place.
CREATE OR REPLACE FUNCTION oldest_write(now float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT (floor(now / 8640000) - 2) * 8640000
$$;

-- An instant before `at`: `now` minus a power of two. A verb that brings thousands of runs back notes a few instants, not one
-- for each run: the table of locks has room for some thousands.
CREATE OR REPLACE FUNCTION coarse_instant(at float8, now float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT now - 2 ^ ceil(ln(greatest(now - at, 0.01)) / ln(2) + 0.001)
$$;

-- The instant before which no write is under way. SLACK covers a server clock that was set back: the store's time goes back by
-- less than that (now_of).
CREATE OR REPLACE FUNCTION horizon(now float8) RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT now - {SLACK} - coalesce(max(w.age) FILTER (WHERE w.age < 4294967296 - 360000), 0) / 100.0 FROM (
        SELECT (floor(now * 100)::bigint - l.objid::bigint) & 4294967295 AS age FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid::bigint = lock_class('writes')::bigint & 4294967295
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) AS w);
END $$;

-- The place in its lane of a run that is due at `due`: rule 2. Race: the write is noted before `intended` is read.
-- NULL in the transaction of a caller (submit), which may stay open for long: a write noted there would keep all floors where
-- they are. place_at_commit finds the place.
CREATE OR REPLACE FUNCTION lane_place(of_task text, in_queue text, level smallint, due float8, now float8) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
    at float8 := greatest(due, oldest_write(now));
BEGIN
    IF current_setting('rota.open', true) <> '' THEN RETURN NULL; END IF;
    IF due >= now THEN RETURN due; END IF;
    PERFORM note_write(coarse_instant(at, now));
    RETURN greatest(at, (SELECT f.intended FROM floors f
                         WHERE f.kind = 0 AND f.task = of_task AND f.queue = in_queue AND f.priority = level
                         ORDER BY f.version DESC LIMIT 1));
END $$;

-- The expiry `expires` of a run that comes in. An expiry in the past is below the floor, so the floor goes: the next claim
-- walks over the dead rows once.
CREATE OR REPLACE FUNCTION noted_expiry(expires float8, now float8) RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN
    IF expires < now AND coalesce(current_setting('rota.open', true), '') = '' THEN
        PERFORM note_write(coarse_instant(greatest(expires, oldest_write(now)), now));
        DELETE FROM floors WHERE kind = 1;
    END IF;
    RETURN expires;
END $$;

-- Put the runs of a caller's transaction into their lanes, when it commits. The transaction may be REPEATABLE READ and see old
-- floors, so it reads none: no floor is above the present time - SLACK. A run of a long transaction comes in behind the runs
-- that were due before that. An expiry in the past becomes the present time, too.
CREATE OR REPLACE FUNCTION place_at_commit() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    skew float8 := coalesce(nullif(current_setting('rota.open', true), '')::float8, 0);
    now float8;
BEGIN
    PERFORM note_write(extract(epoch FROM clock_timestamp())::float8 + skew - {SLACK});
    now := now_of(skew, 0, false);
    UPDATE queue SET lane_at = greatest(due_at, now - {SLACK}), expires_at = CASE WHEN expires_at < now THEN now ELSE expires_at END
    WHERE id = NEW.id AND lane_at IS NULL;
    IF FOUND AND (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} THEN
        PERFORM record_events('', 'runs', ARRAY[CASE TG_OP WHEN 'INSERT' THEN 'queued' ELSE 'joined' END], ARRAY[NEW.id::text],
            NULL, NULL, ARRAY[CASE TG_OP WHEN 'INSERT' THEN 'accepted' ELSE 'joined' END], NULL, now);
    END IF;
    RETURN NULL;
END $$;

-- Raise one floor: rule 3. `head` is the lowest live row up to `bound`; NULL: there is none. `bound` is the horizon, which was
-- read before `head`.
CREATE OR REPLACE FUNCTION raise_floor(
    which smallint, of_task text, level smallint, head float8, bound float8, now float8, in_queue text DEFAULT ''
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    known floors;
    target float8 := least(head, bound);
BEGIN
    SELECT * INTO known FROM floors f
    WHERE f.kind = which AND f.task = of_task AND f.queue = in_queue AND f.priority = level
    ORDER BY f.version DESC LIMIT 1;
    IF NOT FOUND THEN
        INSERT INTO floors VALUES (which, of_task, in_queue, level, 0, '-Infinity', target, now);
        RETURN;
    END IF;
    IF known.intended <= target THEN known.floor := known.intended; END IF;
    UPDATE floors f SET version = f.version + 1, floor = known.floor, intended = greatest(known.floor, target), raised_at = now
    WHERE f.kind = which AND f.task = of_task AND f.queue = in_queue AND f.priority = level AND f.version = known.version;
END $$;

-- Raise the floors of the indexes from which a claim has just taken the runs `took`, every RAISE_EVERY seconds. One claim at a
-- time does it: `intended` has been committed when the next one reads the horizon. A run that its worker was handed may have
-- ended already. It is the last thing that a claim does,
-- so the locks on floors are held only for the commit.
CREATE OR REPLACE FUNCTION raise_floors(took text[], now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    raised_at float8 := (SELECT f.raised_at FROM floors f WHERE f.kind = 2 AND f.task = '' AND f.queue = '' AND f.priority = 0
                         ORDER BY f.version DESC LIMIT 1);
    bound float8;
    lane record;
BEGIN
    IF now BETWEEN raised_at AND raised_at + {RAISE_EVERY} THEN RETURN; END IF;
    IF NOT pg_try_advisory_xact_lock(lock_class('floors'), 0) THEN RETURN; END IF;
    bound := horizon(now);
    FOR lane IN SELECT l.task::text, l.queue::text, l.priority FROM leases l WHERE l.id = ANY(took)
                UNION SELECT f.task::text, f.queue::text, f.priority FROM finished f WHERE f.id = ANY(took) LOOP
        PERFORM raise_floor(0::smallint, lane.task, lane.priority, (
            SELECT q.lane_at FROM queue q
            WHERE q.hold = 0 AND q.task = lane.task AND q.queue = lane.queue AND q.priority = lane.priority
              AND q.lane_at BETWEEN floor_of(0::smallint, lane.task, lane.priority, lane.queue) AND bound
            ORDER BY q.lane_at LIMIT 1), bound, now, lane.queue);
    END LOOP;
    PERFORM raise_floor(1::smallint, '', 0::smallint, (
        SELECT q.expires_at FROM queue q WHERE q.expires_at BETWEEN floor_of(1::smallint, '', 0::smallint) AND bound AND q.hold <> 3
        ORDER BY q.expires_at LIMIT 1), bound, now);
    PERFORM raise_floor(2::smallint, '', 0::smallint, (
        SELECT l.until FROM leases l WHERE l.until BETWEEN floor_of(2::smallint, '', 0::smallint) AND bound
        ORDER BY l.until LIMIT 1), bound, now);
    PERFORM raise_floor(3::smallint, '', 0::smallint, (
        SELECT s.look_at FROM schedules s WHERE s.look_at BETWEEN floor_of(3::smallint, '', 0::smallint) AND bound
        ORDER BY s.look_at LIMIT 1), bound, now);
    IF EXISTS (SELECT FROM specs s WHERE s.rate_per_key) THEN
        PERFORM raise_floor(5::smallint, '', 0::smallint, (
            SELECT r.opens_at FROM rates r WHERE r.opens_at BETWEEN floor_of(5::smallint, '', 0::smallint) AND bound
            ORDER BY r.opens_at LIMIT 1), bound, now);
    END IF;
END $$;
