-- Rules that several verbs share. Verbs are READ COMMITTED: each statement sees what was committed before it began.
-- Their plans are made once per connection, perhaps while the tables are empty, and have to hold when they are full. So
-- the verbs forbid whatever reads a whole table: every step is a look-up by index for each row of the batch.
--
-- Locks are taken in this order, so that verbs wait for each other but never in a ring: the worker, gated tasks by
-- name, leases by id, names and plans (lock_names) by bucket, the queue (waiting children by id, guarded inserts, parked
-- runs), workers to hint (never waited for). What a lock protects is read by a later statement than the one that took it.

-- An instant so many seconds later on the grid of 10 microseconds, never rounded to an earlier one.
CREATE FUNCTION after(now float8, seconds float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN round((now + seconds) * 100000::float8) / 100000::float8 >= now + seconds
                THEN round((now + seconds) * 100000::float8) / 100000::float8
                ELSE (round((now + seconds) * 100000::float8) + 1) / 100000::float8 END
$$;

-- The store's time: the server's clock, which may be set back. `seen` is the latest that the caller has seen, `latest`
-- what any verb has written down, about once a second; nobody waits for that row. A clock that once stood more than an
-- hour ahead was wrong: the store's time goes back then, because standing still until it is true would be worse.
CREATE FUNCTION now_of(skew float8, seen float8, keep boolean) RETURNS float8
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    here float8 := round((extract(epoch FROM clock_timestamp())::float8 + skew) * 100000::float8) / 100000::float8;
    known float8 := (SELECT latest FROM clock);
BEGIN
    IF keep AND here > known + (skew = 0)::integer THEN
        UPDATE clock SET latest = here WHERE ctid = (SELECT ctid FROM clock FOR UPDATE SKIP LOCKED);
    END IF;
    IF known > here AND known < here + 3600 THEN here := known; END IF;
    IF seen > here AND seen < here + 3600 THEN here := seen; END IF;
    RETURN here;
END $$;

-- How many may start now, by GCRA.
CREATE FUNCTION tokens(full_at float8, pace float8, burst integer, now float8) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN now < full_at - (burst - 1) * pace THEN 0
                ELSE least(burst, 1 + floor(least(1e6, (now - (full_at - (burst - 1) * pace)) / pace))::integer) END
$$;

-- Lock what limits these tasks, in the order of their names; which of them are gated.
CREATE FUNCTION lock_gates(tasks text[]) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM specs WHERE gated AND name = ANY(tasks)) THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(SELECT name FROM specs WHERE gated AND name = ANY(tasks) ORDER BY name FOR NO KEY UPDATE);
END $$;

-- The lanes of these tasks, and when the first run of each is due: a look-up per lane, however long it is.
CREATE FUNCTION lanes(tasks text[]) RETURNS TABLE (task text, priority smallint, head float8)
LANGUAGE sql STABLE ROWS 10 AS $$
    WITH RECURSIVE lane (task, priority) AS (
        SELECT known, (SELECT q.priority FROM queue q WHERE q.hold = 0 AND q.task = known
                       ORDER BY q.priority DESC LIMIT 1)
        FROM unnest(tasks) AS known
        UNION ALL
        SELECT lane.task, (SELECT q.priority FROM queue q WHERE q.hold = 0 AND q.task = lane.task
                           AND q.priority < lane.priority ORDER BY q.priority DESC LIMIT 1)
        FROM lane WHERE lane.priority IS NOT NULL
    )
    SELECT lane.task, lane.priority,
           (SELECT q.due_at FROM queue q WHERE q.hold = 0 AND q.task = lane.task AND q.priority = lane.priority
            ORDER BY q.due_at LIMIT 1)
    FROM lane WHERE lane.priority IS NOT NULL
$$;

-- An idle worker for each of these arrivals, unless it wakes in time by itself; the last to wake first. A task of NULL
-- is a schedule: anyone can fire it, and one who wakes in time is enough. Whoever is hinted is no longer idle. A worker
-- whose row is locked is claiming right now, and passed over.
CREATE FUNCTION hint(tasks text[], dues float8[], now float8) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    idle_now bigint;
    hinted text[] := '{}';
    found_one text;
    arrival record;
    first_tick float8;
BEGIN
    IF cardinality(tasks) IS NULL OR cardinality(tasks) = 0 THEN RETURN hinted; END IF;
    SELECT count(*) INTO idle_now FROM workers w WHERE w.idle = 1 AND w.seen_at > now - 15;
    IF idle_now = 0 THEN RETURN hinted; END IF;
    FOR arrival IN
        SELECT * FROM (SELECT a.task, a.due_at, row_number() OVER (PARTITION BY a.task ORDER BY a.due_at) AS place
                       FROM unnest(tasks, dues) AS a (task, due_at)) AS ranked
        WHERE ranked.task IS NOT NULL AND ranked.place <= idle_now ORDER BY ranked.due_at
    LOOP
        UPDATE workers SET idle = 2 WHERE ctid = (
            SELECT w.ctid FROM workers w
            WHERE w.idle = 1 AND w.seen_at > now - 15 AND arrival.task = ANY(w.tasks)
              AND coalesce(w.wake_at, 'Infinity') > arrival.due_at
            ORDER BY coalesce(w.wake_at, 'Infinity') DESC, w.name LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
        ) RETURNING name INTO found_one;
        IF FOUND THEN
            hinted := hinted || found_one;
            EXIT WHEN cardinality(hinted) >= idle_now;
        END IF;
    END LOOP;
    SELECT min(a.due_at) INTO first_tick FROM unnest(tasks, dues) AS a (task, due_at) WHERE a.task IS NULL;
    IF first_tick IS NOT NULL AND cardinality(hinted) = 0 AND NOT EXISTS (
        SELECT FROM workers w WHERE w.idle = 1 AND w.seen_at > now - 15 AND w.wake_at <= first_tick
    ) THEN
        UPDATE workers SET idle = 2 WHERE ctid = (
            SELECT w.ctid FROM workers w WHERE w.idle = 1 AND w.seen_at > now - 15
            ORDER BY coalesce(w.wake_at, 'Infinity') DESC, w.name LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
        ) RETURNING name INTO found_one;
        IF FOUND THEN hinted := hinted || found_one; END IF;
    END IF;
    RETURN hinted;
END $$;

-- Tell the other processes that listen; the caller's own are told by its client. Sent when the transaction commits.
-- `unheard` are tasks that have something to start for which no idle worker was seen: each process that listens calls one
-- of its own, if it has one by then.
CREATE FUNCTION tell(me text, hinted text[], touched text[], unheard text[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    channel text := 'rota.' || current_schema();
    payload text;
BEGIN
    IF coalesce(cardinality(hinted), 0) + coalesce(cardinality(touched), 0) + cardinality(unheard) = 0 OR NOT EXISTS (
        SELECT FROM listeners l WHERE l.id <> me AND l.until > clock_timestamp()
    ) THEN
        RETURN;
    END IF;
    payload := json_build_object('from', me, 'workers', hinted, 'runs', touched, 'tasks', unheard)::text;
    IF octet_length(payload) < 7900 THEN
        PERFORM pg_notify(channel, payload);
        RETURN;
    END IF;
    -- A payload has at most 8,000 bytes: workers are named a few at a time, runs are looked for by those who wait.
    PERFORM pg_notify(channel, json_build_object('from', me, 'resync', true)::text);
    FOR i IN 0 .. (coalesce(cardinality(hinted), 0) - 1) / 10 LOOP
        PERFORM pg_notify(channel, json_build_object('from', me, 'workers', hinted[i * 10 + 1 : i * 10 + 10])::text);
    END LOOP;
END $$;

-- One row per (task, key, reason), however often it was said.
CREATE FUNCTION decide(
    tasks text[], keys text[], reasons text[], counts bigint[], runs text[], said text, asker text, now float8
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(cardinality(tasks), 0) = 0 THEN RETURN; END IF;
    INSERT INTO decisions (task, key, reason, count, first_at, last_at, run, note, by)
    SELECT d.task, coalesce(d.key, ''), d.reason, sum(coalesce(d.count, 1)), now, now,
           (array_agg(d.run ORDER BY d.place DESC))[1], said, asker
    FROM unnest(tasks, keys, reasons, counts, runs) WITH ORDINALITY AS d (task, key, reason, count, run, place)
    GROUP BY 1, 2, 3 ORDER BY d.task COLLATE "C", coalesce(d.key, '') COLLATE "C", d.reason COLLATE "C"
    ON CONFLICT (task, key, reason) DO UPDATE SET count = decisions.count + excluded.count,
        last_at = excluded.last_at, run = excluded.run, note = excluded.note, by = excluded.by;
END $$;

-- Let the best parked runs of a key into the due index; when they are due. Under the lock of the task's gate.
CREATE FUNCTION unpark(which text, about text, most integer) RETURNS float8[] LANGUAGE plpgsql AS $$
DECLARE
    dues float8[];
BEGIN
    WITH best AS (
        UPDATE queue SET hold = 0 WHERE id = ANY(ARRAY(
            SELECT q.id FROM queue q WHERE q.hold = 1 AND q.task = which AND q.key = about
            ORDER BY q.priority DESC, q.due_at, q.seq LIMIT most FOR NO KEY UPDATE)) AND hold = 1
        RETURNING due_at
    )
    SELECT array_agg(due_at) INTO dues FROM best;
    RETURN coalesce(dues, '{}');
END $$;

-- A run of a gated task no longer runs or stands ready: another may start. When something of its task is due now.
-- An end gives a rate no token back, so only a limit lets the next one of its key in then.
CREATE FUNCTION freed(which text, about text, was_running boolean, now float8) RETURNS float8[] LANGUAGE plpgsql AS $$
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

-- These runs have ended, these names are done: those that waited for nothing else may start. A set, not a counter:
-- idempotent. The child's row is read as it is once locked, so of two parents that end at once the second one empties the
-- set. One with rules of rest is judged by the mark as its last parent left it: it starts when each rule that holds now
-- has let go. Only rows that were met are removed from waits: others may have come in meanwhile.
CREATE FUNCTION release(gone text[], now float8, OUT tasks text[], OUT dues float8[]) LANGUAGE plpgsql AS $$
DECLARE
    waiting text[] := ARRAY(SELECT DISTINCT w.run::text FROM waits w WHERE w.ended = ANY(gone));
    child record;
    due float8;
BEGIN
    tasks := '{}'; dues := '{}';
    IF waiting = '{}' THEN RETURN; END IF;
    PERFORM FROM queue q WHERE q.id = ANY(waiting) ORDER BY q.id FOR NO KEY UPDATE;
    -- Whoever waited for any end of something has seen one, a cancel too: it is not waited for again.
    INSERT INTO marks AS m (task, key, finished_at, failures)
    SELECT DISTINCT substr(w.ended, 2, strpos(w.ended, ' ') - 2), substr(w.ended, strpos(w.ended, ' ') + 1), now, 0
    FROM waits w WHERE w.ended = ANY(gone) AND w.run = ANY(waiting) AND starts_with(w.ended, '*')
    ON CONFLICT (task, key) DO UPDATE SET finished_at = coalesce(m.finished_at, excluded.finished_at);
    DELETE FROM waits w WHERE w.ended = ANY(gone) AND w.run = ANY(waiting);
    WITH freed AS (
        UPDATE queue q SET
            needs = nullif(ARRAY(SELECT n FROM unnest(q.needs) n WHERE n <> ALL(gone)), '{}'),
            hold = CASE WHEN q.hold = 2 AND q.needs <@ gone THEN 0 ELSE q.hold END
        WHERE q.id = ANY(waiting) AND q.needs && gone
        RETURNING q.id, q.task, q.due_at, q.hold, q.needs, q.rest
    )
    SELECT array_agg(f.task::text) FILTER (WHERE f.hold = 0 AND f.rest IS NULL),
           array_agg(f.due_at) FILTER (WHERE f.hold = 0 AND f.rest IS NULL)
    INTO tasks, dues FROM freed f;
    tasks := coalesce(tasks, '{}'); dues := coalesce(dues, '{}');
    FOR child IN SELECT q.* FROM queue q WHERE q.id = ANY(waiting) AND q.rest IS NOT NULL AND q.needs IS NULL ORDER BY q.id
    LOOP
        SELECT after(greatest(child.due_at, max(m.finished_at + (rule ->> 1)::float8)), 0) INTO due
        FROM marks m CROSS JOIN json_array_elements(child.rest::json) AS rule
        WHERE m.task = child.task AND m.key = coalesce(child.unique_key, child.key, '')
          AND m.failures >= (rule ->> 0)::integer;
        UPDATE queue q SET due_at = due WHERE q.id = child.id AND q.due_at <> due;
        IF child.hold = 0 THEN
            tasks := tasks || child.task::text;
            dues := dues || coalesce(due, child.due_at);
        END IF;
    END LOOP;
END $$;

-- Runs that wait end without having run: cancelled, dropped, expired. The caller has locked their gates, which are
-- freed only when all of the runs are gone: else one makes room for the next.
CREATE FUNCTION end_waiting(
    ids text[], why text, said text, now float8,
    OUT ended text[], OUT of_task text[], OUT of_key text[], OUT tasks text[], OUT dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    met text[];
    named text[];
    ready_tasks text[];
    ready_keys text[];
    room float8[];
BEGIN
    WITH gone AS (
        DELETE FROM queue WHERE id = ANY(ids) RETURNING *
    ), kept AS (
        INSERT INTO finished (seq, priority, fence, failures, losses, created_at, due_at, finished_at, expires_at,
            marked, awaited, cancel_asked, pause_asked, id, task, key, unique_key, state, reason, body, needs,
            rest, attempts, note, error, progress, saved)
        SELECT g.seq, g.priority, g.fence, g.failures, g.losses, g.created_at, g.due_at, now, g.expires_at,
            g.marked, g.awaited, false, false, g.id, g.task, g.key, g.unique_key, 'cancelled', why, g.body, g.needs,
            g.rest, g.attempts, CASE WHEN why = 'expired' THEN g.note ELSE said END, g.error, g.progress, g.saved
        FROM gone g
    ), waited AS (
        DELETE FROM waits w USING gone g WHERE g.needs IS NOT NULL AND w.ended = ANY(g.needs) AND w.run = g.id
    )
    SELECT array_agg(g.id::text ORDER BY g.seq), array_agg(g.task::text ORDER BY g.seq),
           array_agg(g.key::text ORDER BY g.seq), array_agg(g.id::text) FILTER (WHERE g.awaited),
           array_agg('*' || g.task || ' ' || coalesce(g.unique_key, g.key, '')) FILTER (WHERE g.marked),
           array_agg(g.task::text ORDER BY g.seq) FILTER (WHERE g.hold = 0 AND g.due_at <= now),
           array_agg(g.key::text ORDER BY g.seq) FILTER (WHERE g.hold = 0 AND g.due_at <= now)
    INTO ended, of_task, of_key, met, named, ready_tasks, ready_keys FROM gone g;
    tasks := '{}'; dues := '{}';
    IF met IS NOT NULL OR named IS NOT NULL THEN
        SELECT r.tasks, r.dues INTO tasks, dues FROM release(met || named, now) r;
    END IF;
    IF ready_tasks IS NOT NULL AND EXISTS (SELECT FROM specs s WHERE s.gated AND s.name = ANY(ready_tasks)) THEN
        FOR i IN 1 .. cardinality(ready_tasks) LOOP
            room := freed(ready_tasks[i], ready_keys[i], false, now);
            tasks := tasks || array_fill(ready_tasks[i], ARRAY[cardinality(room)]);
            dues := dues || room;
        END LOOP;
    END IF;
END $$;
