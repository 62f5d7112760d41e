-- twin: rota/stores/ledger/holds.py
-- Limits and rates: how many may start, and who is let in when there is room. The caller holds lock_gates.

-- How many may start now, by GCRA.
CREATE OR REPLACE FUNCTION tokens(full_at float8, pace float8, burst integer, now float8) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN now < full_at - (burst - 1) * pace THEN 0
                ELSE least(burst, 1 + floor(least(1e6, (now - (full_at - (burst - 1) * pace)) / pace))::integer) END
$$;

-- May anything of this task start now? Those whose key is full are parked.
CREATE OR REPLACE FUNCTION has_room(which text, now float8) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (
        SELECT FROM specs s WHERE s.name = which AND s.gated
          AND (s.total <= (SELECT count(*) FROM leases l WHERE l.gated AND l.task = which)
               OR NOT s.rate_per_key AND 0 = tokens(
                   coalesce((SELECT r.full_at FROM rates r WHERE r.task = which AND r.key = ''), 0),
                   s.rate_interval, s.rate_burst, now)))
$$;

-- Starts cost tokens; a key whose runs are parked for want of one is let go when the next comes.
CREATE OR REPLACE FUNCTION keep_rates(taken text[], parked text[], gates text[], now float8) RETURNS void LANGUAGE sql AS $$
    WITH touched AS (
        SELECT l.task, l.key, 1 AS n FROM leases l WHERE l.id = ANY(taken)
        UNION ALL SELECT q.task, q.key, 0 FROM queue q WHERE q.id = ANY(parked)
    ), used AS (
        SELECT g.name, CASE WHEN g.rate_per_key THEN t.key ELSE '' END AS key, sum(t.n) AS n, g.rate_interval AS pace,
               g.rate_burst AS burst, g.rate_per_key AS keyed, g.per_key
        FROM touched t JOIN specs g ON g.name = t.task
        WHERE g.name = ANY(gates) AND g.rate_interval IS NOT NULL AND (NOT g.rate_per_key OR t.key IS NOT NULL)
        GROUP BY g.name, 2, g.rate_interval, g.rate_burst, g.rate_per_key, g.per_key
    ), after_it AS (
        SELECT u.*, CASE WHEN u.n > 0 THEN greatest(coalesce(r.full_at, 0), now) + u.n * u.pace
                         ELSE coalesce(r.full_at, 0) END AS full_at
        FROM used u LEFT JOIN rates r ON r.task = u.name AND r.key = u.key
    )
    INSERT INTO rates (task, key, full_at, opens_at)
    SELECT a.name, a.key, a.full_at, CASE
        WHEN a.keyed
         AND (a.per_key IS NULL OR a.per_key > (
             SELECT count(*) FROM leases l WHERE l.gated AND l.task = a.name AND l.key = a.key))
         AND EXISTS (SELECT FROM queue q WHERE q.hold = 1 AND q.task = a.name AND q.key = a.key)
        THEN a.full_at - (a.burst - 1) * a.pace END
    FROM after_it a WHERE a.full_at > 0
    ON CONFLICT (task, key) DO UPDATE SET full_at = excluded.full_at, opens_at = excluded.opens_at
$$;

-- Parked runs of keys that their rate held up, where its time has come.
CREATE OR REPLACE FUNCTION unpark_opened(now float8, OUT tasks text[], OUT dues float8[]) LANGUAGE plpgsql AS $$
DECLARE
    opened record;
    room float8[];
BEGIN
    tasks := '{}'; dues := '{}';
    FOR opened IN UPDATE rates r SET opens_at = NULL WHERE r.opens_at <= now RETURNING r.task, r.key, r.full_at LOOP
        SELECT unpark(opened.task, opened.key, tokens(opened.full_at, s.rate_interval, s.rate_burst, now)) INTO room
        FROM specs s WHERE s.name = opened.task AND s.rate_interval IS NOT NULL;
        IF FOUND AND room <> '{}' THEN
            tasks := tasks || array_fill(opened.task::text, ARRAY[cardinality(room)]);
            dues := dues || room;
        END IF;
    END LOOP;
END $$;

-- Let the best parked runs of a key into the due index; when they are due. Under the lock of the task's gate.
CREATE OR REPLACE FUNCTION unpark(which text, about text, most integer) RETURNS float8[] LANGUAGE plpgsql AS $$
DECLARE
    dues float8[];
BEGIN
    WITH best AS (
        UPDATE queue SET hold = 0 WHERE id = ANY(ARRAY(
            SELECT q.id FROM queue q WHERE q.hold = 1 AND q.task = which AND q.key = about
            ORDER BY q.priority DESC, q.due_at, q.seq LIMIT most FOR NO KEY UPDATE))
            AND hold + 0 = 1  -- find the rows by id, not by an index on `hold`
        RETURNING due_at
    )
    SELECT array_agg(due_at) INTO dues FROM best;
    RETURN coalesce(dues, '{}');
END $$;

-- A run of a gated task no longer runs or stands ready: another may start. When something of its task is due now.
-- An end gives a rate no token back, so only a limit lets the next one of its key in then.
CREATE OR REPLACE FUNCTION freed(which text, about text, was_running boolean, now float8) RETURNS float8[] LANGUAGE plpgsql AS $$
DECLARE
    limited boolean;
BEGIN
    SELECT s.per_key IS NOT NULL INTO limited FROM specs s WHERE s.name = which AND s.gated;
    IF NOT FOUND THEN RETURN '{}'; END IF;
    IF about IS NOT NULL AND (limited OR NOT was_running) THEN
        RETURN unpark(which, about, 1) || now;
    END IF;
    RETURN ARRAY[now];
END $$;

-- Many runs of gated tasks have ended: `freed` for all of them, a look-up per key.
CREATE OR REPLACE FUNCTION free_all(of_task text[], of_key text[], now float8, OUT tasks text[], OUT dues float8[])
LANGUAGE plpgsql AS $$
DECLARE
    room record;
BEGIN
    tasks := of_task; dues := array_fill(now, ARRAY[cardinality(of_task)]);
    FOR room IN
        SELECT f.task, unpark(f.task, f.key, f.n::integer) AS dues FROM (
            SELECT e.task, e.key, count(*) AS n FROM unnest(of_task, of_key) AS e (task, key) JOIN specs s ON s.name = e.task
            WHERE e.key IS NOT NULL AND s.per_key IS NOT NULL GROUP BY e.task, e.key) AS f
        WHERE EXISTS (SELECT FROM queue q WHERE q.hold = 1 AND q.task = f.task AND q.key = f.key)
    LOOP
        tasks := tasks || array_fill(room.task, ARRAY[cardinality(room.dues)]);
        dues := dues || room.dues;
    END LOOP;
END $$;
