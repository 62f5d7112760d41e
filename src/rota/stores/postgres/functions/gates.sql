-- twin: rota/stores/ledger/gates.py rota/stores/ledger/holds.py
-- Gates: limits and rates. How many runs may start, and which parked runs are unparked when there is room.
-- Lock order: the caller of these functions has locked the gates of the tasks (lock_gates).

-- How many runs may start now under a rate, by GCRA: `pace` is the seconds between two starts.
CREATE OR REPLACE FUNCTION tokens(full_at float8, pace float8, burst integer, now float8) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN now < full_at - (burst - 1) * pace THEN 0
                ELSE least(burst, 1 + floor(least(1e6, (now - (full_at - (burst - 1) * pace)) / pace))::integer) END
$$;

-- How many more runs may start under the named limit that has this row in specs.
CREATE OR REPLACE FUNCTION room_of(limit_row text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT s.total FROM specs s WHERE s.name = limit_row), 1000000)
        - coalesce((SELECT r.n FROM running r WHERE r.task = limit_row AND r.key = '' ORDER BY r.version DESC LIMIT 1), 0);
END $$;

-- Keep those of the runs `ids`, in their order, for which the named limits of their tasks have room. `full_tasks`: the tasks of the
-- others. The caller has locked the gates of the tasks and the rows of the limits; a limit that is not among `gates` has none.
CREATE OR REPLACE FUNCTION fit_limits(ids text[], gates text[], OUT kept text[], OUT full_tasks text[]) LANGUAGE plpgsql AS $$
DECLARE
    names text[] := ARRAY(SELECT DISTINCT l FROM specs s CROSS JOIN unnest(s.limits) AS l WHERE s.name = ANY(gates));
    rooms integer[] := ARRAY(SELECT CASE WHEN l = ANY(gates) THEN room_of(l) ELSE 0 END FROM unnest(names) AS l);
    run record;
    place integer;
BEGIN
    kept := '{}'; full_tasks := '{}';
    FOR run IN
        SELECT i.id, q.task::text, coalesce(s.limits, '{}') AS limits FROM unnest(ids) WITH ORDINALITY AS i (id, place)
        CROSS JOIN LATERAL (SELECT q.task FROM queue q WHERE q.id = i.id OFFSET 0) AS q
        LEFT JOIN LATERAL (SELECT s.limits FROM specs s WHERE s.name = q.task OFFSET 0) AS s ON true ORDER BY i.place
    LOOP
        IF EXISTS (SELECT FROM unnest(run.limits) AS l WHERE coalesce(rooms[array_position(names, l)], 0) <= 0) THEN
            full_tasks := full_tasks || run.task;
            CONTINUE;
        END IF;
        FOR i IN 1 .. cardinality(run.limits) LOOP
            place := array_position(names, run.limits[i]);
            rooms[place] := rooms[place] - 1;
        END LOOP;
        kept := kept || run.id;
    END LOOP;
END $$;

-- Leases that counted against these named limits have ended: the tasks that share one of them and have due runs.
CREATE OR REPLACE FUNCTION freed_by(names text[], now float8) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(SELECT DISTINCT any_lane(l.task) FROM lanes(ARRAY(
        SELECT s.name::text FROM specs s WHERE s.gated AND s.limits && names), '{}') AS l WHERE l.head <= now);
END $$;

-- When the bucket of a rate would be full again; 0 for a rate that nobody has used.
CREATE OR REPLACE FUNCTION full_at(of_task text, of_key text) RETURNS float8 LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT r.full_at FROM rates r WHERE r.task = of_task AND r.key = of_key ORDER BY r.version DESC LIMIT 1), 0);
END $$;

-- Does the limit and the rate of the task as a whole let a run start now? Limits by key need no look here: the runs of a
-- saturated key are parked.
CREATE OR REPLACE FUNCTION has_room(which text, now float8) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (
        SELECT FROM specs s WHERE s.name = which AND s.gated
          AND (s.total <= coalesce((SELECT r.n FROM running r WHERE r.task = which AND r.key = '' ORDER BY r.version DESC LIMIT 1), 0)
               OR EXISTS (SELECT FROM unnest(s.limits) AS l WHERE room_of(l) <= 0)
               OR NOT s.rate_per_key AND 0 = tokens(
                   full_at(which, ''),
                   s.rate_interval, s.rate_burst, now)))
$$;

-- Take tokens from the rates for the runs `taken`. For a key that has parked runs and a free seat, `opens_at` becomes the time
-- of its next token: then `unpark_opened` unparks runs of the key. Lock order: the caller has locked the gates.
CREATE OR REPLACE FUNCTION keep_rates(taken text[], parked text[], gates text[], now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    rate record;
    known rates;
BEGIN
    FOR rate IN WITH touched AS (
        SELECT l.task, l.key, 1 AS n FROM leases l WHERE l.id = ANY(taken)
        UNION ALL SELECT q.task, q.key, 0 FROM queue q WHERE q.id = ANY(parked)
    ), used AS (
        SELECT g.name, CASE WHEN g.rate_per_key THEN t.key ELSE '' END AS key, sum(t.n) AS n, g.rate_interval AS pace,
               g.rate_burst AS burst, g.rate_per_key AS keyed, g.per_key
        FROM touched t JOIN specs g ON g.name = t.task
        WHERE g.name = ANY(gates) AND g.rate_interval IS NOT NULL AND (NOT g.rate_per_key OR t.key IS NOT NULL)
        GROUP BY g.name, 2, g.rate_interval, g.rate_burst, g.rate_per_key, g.per_key
    ), after_it AS (
        SELECT u.*, CASE WHEN u.n > 0 THEN greatest(f.full_at, now) + u.n * u.pace ELSE f.full_at END AS full_at
        FROM used u CROSS JOIN LATERAL full_at(u.name, u.key) AS f (full_at)
    )
    SELECT a.name, a.key, a.full_at, CASE
        WHEN a.keyed
         AND (a.per_key IS NULL OR a.per_key > coalesce((SELECT r.n FROM running r WHERE r.task = a.name AND r.key = '=' || a.key ORDER BY r.version DESC LIMIT 1), 0))
         AND EXISTS (SELECT FROM queue q WHERE q.hold = 1 AND q.task = a.name AND q.key = a.key)
        THEN greatest(a.full_at - (a.burst - 1) * a.pace, now) END AS opens_at
    FROM after_it a WHERE a.full_at > 0
    LOOP
        SELECT r.* INTO known FROM rates r WHERE r.task = rate.name AND r.key = rate.key ORDER BY r.version DESC LIMIT 1;
        IF FOUND THEN
            UPDATE rates r SET version = r.version + 1, full_at = rate.full_at, opens_at = rate.opens_at
            WHERE r.task = known.task AND r.key = known.key AND r.version = known.version;
        ELSE
            INSERT INTO rates VALUES (rate.name, rate.key, floor(now * {PER_SECOND})::bigint, rate.full_at, rate.opens_at);
        END IF;
    END LOOP;
END $$;

-- Unpark runs of the keys whose rate has a token again (`opens_at`). Returns the arrivals for `to_hint`.
CREATE OR REPLACE FUNCTION unpark_opened(now float8, OUT tasks text[], OUT dues float8[]) LANGUAGE plpgsql AS $$
DECLARE
    opened record;
    room float8[];
BEGIN
    tasks := '{}'; dues := '{}';
    FOR opened IN UPDATE rates r SET version = r.version + 1, opens_at = NULL
                  WHERE r.opens_at BETWEEN floor_of(5::smallint, '', 0::smallint) AND now RETURNING r.task, r.key, r.full_at LOOP
        SELECT unpark(opened.task, opened.key, tokens(opened.full_at, s.rate_interval, s.rate_burst, now), now) INTO room
        FROM specs s WHERE s.name = opened.task AND s.rate_interval IS NOT NULL;
        IF FOUND AND room <> '{}' THEN
            tasks := tasks || array_fill(any_lane(opened.task), ARRAY[cardinality(room)]);
            dues := dues || room;
        END IF;
    END LOOP;
END $$;

-- Unpark the best runs of a key, `most` in each queue, because a queue may have no worker: they enter the due index. Returns
-- their due times. Lock order: the caller has locked
-- the gate of the task, so it may lock parked runs of the task at any time.
CREATE OR REPLACE FUNCTION unpark(which text, about text, most integer, now float8) RETURNS float8[] LANGUAGE plpgsql AS $$
DECLARE
    in_queue text := '';
    more float8[];
    dues float8[] := '{}';
BEGIN
    WHILE in_queue IS NOT NULL LOOP
        WITH best AS (
            UPDATE queue SET hold = 0, lane_at = lane_place(task, queue, priority, due_at, now) WHERE id = ANY(ARRAY(
                SELECT q.id FROM queue q WHERE q.hold = 1 AND q.task = which AND q.key = about AND q.queue = in_queue
                ORDER BY q.priority DESC, q.due_at, q.seq LIMIT most FOR NO KEY UPDATE))
                AND hold + 0 = 1  -- find the rows by id, not by an index on `hold`
            RETURNING due_at
        )
        SELECT array_agg(due_at) INTO more FROM best;
        dues := dues || coalesce(more, '{}');
        in_queue := (SELECT q.queue FROM queue q WHERE q.hold = 1 AND q.task = which AND q.key = about AND q.queue > in_queue
                     ORDER BY q.queue LIMIT 1);
    END LOOP;
    RETURN dues;
END $$;

-- A run of the task `which` and the key `about` gave up its seat or its place in the due index: unpark one run of the key.
-- Returns the times at which runs of the task, in any queue, are due; none if the task has no gate. The end of a run (`was_running`) gives
-- no token back to a rate, so it unparks a run only if the task has a limit per key.
CREATE OR REPLACE FUNCTION freed(which text, about text, was_running boolean, now float8) RETURNS float8[] LANGUAGE plpgsql AS $$
DECLARE
    limited boolean;
BEGIN
    SELECT s.per_key IS NOT NULL INTO limited FROM specs s WHERE s.name = which AND s.gated;
    IF NOT FOUND THEN RETURN '{}'; END IF;
    IF about IS NOT NULL AND (limited OR NOT was_running) THEN
        RETURN unpark(which, about, 1, now) || now;
    END IF;
    RETURN ARRAY[now];
END $$;

-- Change the numbers of running runs of gated tasks: `by` for each of these leases, in all and for its key. A number stays when it
-- is 0, because a look for a row that does not exist would walk over its dead versions. Lock order: the caller has locked the
-- gates; a settle of a task that has just got its gate has not, so the row is locked before it is changed.
CREATE OR REPLACE FUNCTION count_running(of_task text[], of_key text[], by integer, now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    counted record;
    known running;
BEGIN
    FOR counted IN
        SELECT c.task, c.key, count(*)::integer AS n FROM (
            SELECT l.task, '' AS key FROM unnest(of_task) AS l (task)
            UNION ALL SELECT l.task, '=' || l.key FROM unnest(of_task, of_key) AS l (task, key) WHERE l.key IS NOT NULL) AS c
        GROUP BY c.task, c.key ORDER BY c.task COLLATE "C", c.key COLLATE "C"
    LOOP
        SELECT r.* INTO known FROM running r WHERE r.task = counted.task AND r.key = counted.key
        ORDER BY r.version DESC LIMIT 1 FOR UPDATE;
        IF FOUND THEN
            UPDATE running r SET version = r.version + 1, n = r.n + by * counted.n, changed_at = now
            WHERE r.task = known.task AND r.key = known.key AND r.version = known.version;
        ELSE
            INSERT INTO running VALUES (counted.task, counted.key, 0, by * counted.n, now);
        END IF;
    END LOOP;
END $$;

-- Lock the numbers in which the leases of these runs are counted, before `settle` counts them run by run: a task that has lost
-- its limits since then has no gate that its caller could lock. Lock order: running, behind leases (4), by task and key. `late`:
-- the caller has locked some of them, so NOWAIT.
CREATE OR REPLACE FUNCTION lock_running(ids text[], late boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    counted record;
BEGIN
    FOR counted IN
        SELECT c.task, c.key FROM leases l CROSS JOIN LATERAL (
            SELECT l.task::text, '' WHERE l.gated
            UNION ALL SELECT l.task::text, '=' || l.key WHERE l.gated AND l.key IS NOT NULL
            UNION ALL SELECT n, '' FROM unnest(l.limits) AS n) AS c (task, key)
        WHERE l.id = ANY(ids) GROUP BY c.task, c.key ORDER BY c.task COLLATE "C", c.key COLLATE "C"
    LOOP
        IF late THEN
            PERFORM FROM running r WHERE r.task = counted.task AND r.key = counted.key
            ORDER BY r.version DESC LIMIT 1 FOR UPDATE NOWAIT;
        ELSE
            PERFORM FROM running r WHERE r.task = counted.task AND r.key = counted.key
            ORDER BY r.version DESC LIMIT 1 FOR UPDATE;
        END IF;
    END LOOP;
END $$;

-- Count the running runs of these tasks anew, from their leases. The caller has locked their gates and their leases.
CREATE OR REPLACE FUNCTION recount_running(tasks text[], now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE running SET n = 0 WHERE task = ANY(tasks) AND n <> 0;
    PERFORM count_running(ARRAY(SELECT l.task::text FROM leases l WHERE l.gated AND l.task = ANY(tasks) ORDER BY l.id),
                          ARRAY(SELECT l.key::text FROM leases l WHERE l.gated AND l.task = ANY(tasks) ORDER BY l.id), 1, now);
END $$;

-- `freed` for many runs of gated tasks that have ended, with one look-up per key. Returns the arrivals for `to_hint`.
CREATE OR REPLACE FUNCTION free_all(of_task text[], of_key text[], now float8, OUT tasks text[], OUT dues float8[])
LANGUAGE plpgsql AS $$
DECLARE
    room record;
BEGIN
    tasks := ARRAY(SELECT any_lane(f) FROM unnest(of_task) AS f); dues := array_fill(now, ARRAY[cardinality(of_task)]);
    FOR room IN
        SELECT f.task, unpark(f.task, f.key, f.n::integer, now) AS dues FROM (
            SELECT e.task, e.key, count(*) AS n FROM unnest(of_task, of_key) AS e (task, key) JOIN specs s ON s.name = e.task
            WHERE e.key IS NOT NULL AND s.per_key IS NOT NULL GROUP BY e.task, e.key) AS f
        WHERE EXISTS (SELECT FROM queue q WHERE q.hold = 1 AND q.task = f.task AND q.key = f.key)
    LOOP
        tasks := tasks || array_fill(any_lane(room.task), ARRAY[cardinality(room.dues)]);
        dues := dues || room.dues;
    END LOOP;
END $$;
