-- twin: rota/stores/events.py rota/stores/ledger/admit.py rota/stores/ledger/settle.py rota/stores/ledger/control.py
-- Events for other processes. A verb records them as the last thing it does, while somebody reads events: until the instant in
-- the sequence `record_until`. A sequence has one version, which every transaction sees at once.
--
-- An event gets its number from the sequence `event_numbers`. The order of the numbers is not the order of the commits: a
-- transaction may commit after another one with a higher number. So a verb notes the last number before it takes its own ones
-- (note_event), by an advisory lock that ends with its transaction. A reader reads the last number, then these locks, then the
-- events up to the lowest noted number: all of them are committed or never will be. A verb that notes its number after the
-- reader has read the locks takes numbers above the last number that the reader has read.
-- No reader looks at the age of transactions: a transaction that has nothing to do with rota holds no event back.

-- Note that this transaction is about to take numbers. The lock is shared, and nobody takes it alone: no verb waits for it.
CREATE OR REPLACE FUNCTION note_event() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    number bigint := (SELECT n.last_value FROM event_numbers n) & 4294967295;
BEGIN
    IF number >= 2147483648 THEN number := number - 4294967296; END IF;
    PERFORM pg_advisory_xact_lock_shared(lock_class('events'), number::integer);
END $$;

-- The number up to which all events are committed or never will be; `last` was read before.
CREATE OR REPLACE FUNCTION settled_events(last bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN last - coalesce((SELECT max(n.age) FILTER (WHERE n.age < 2147483648) FROM (
        SELECT (last - l.objid::bigint) & 4294967295 AS age FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid::bigint = lock_class('events')::bigint & 4294967295
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) AS n), 0);
END $$;

-- Record events about `about`: runs, tasks or schedules. A run without a task in `of_task` is read: its state, and the name of
-- the event if `names` has none. `names` and `reasons` are about runs that have not ended.
CREATE OR REPLACE FUNCTION record_events(
    me text, about text, names text[], ids text[], of_task text[], of_key text[], reasons text[], workers_ text[], now float8
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(cardinality(ids), 0) = 0 THEN RETURN; END IF;
    PERFORM note_event();
    INSERT INTO events (number, at, name, about, id, task, key, state, reason, fence, worker, grp)
    SELECT nextval('event_numbers'), now, n.name, about, n.id, n.task, n.key, n.state, n.reason, n.fence, n.worker, n.grp FROM (
        SELECT CASE WHEN r.state IS NULL OR e.name = 'joined' THEN e.name
                    WHEN r.state IN ('queued', 'running') THEN coalesce(e.name, CASE r.state WHEN 'queued' THEN 'queued' ELSE 'started' END)
                    ELSE r.state END AS name,
               e.id, coalesce(e.task, r.task) AS task, nullif(coalesce(e.key, r.key), '') AS key, r.state,
               CASE WHEN r.state IN ('succeeded', 'failed', 'cancelled') THEN r.reason ELSE e.reason END AS reason,
               coalesce(r.fence, 0) AS fence, coalesce(e.worker, r.worker) AS worker, g.grp
        FROM unnest(names, ids, of_task, of_key, reasons, workers_) WITH ORDINALITY AS e (name, id, task, key, reason, worker, place)
        LEFT JOIN LATERAL (
            SELECT q.task, q.key, CASE q.hold WHEN 3 THEN 'paused' ELSE 'queued' END AS state, NULL AS reason, q.fence,
                   NULL AS worker FROM queue q WHERE q.id = e.id
            UNION ALL SELECT l.task, l.key, 'running', NULL, l.fence, l.worker FROM leases l WHERE l.id = e.id
            UNION ALL SELECT f.task, f.key, f.state, f.reason, f.fence, NULL FROM finished f WHERE f.id = e.id
            OFFSET 0) AS r ON e.task IS NULL
        LEFT JOIN LATERAL (SELECT g.grp FROM grouped g WHERE g.run = e.id OFFSET 0) AS g ON about = 'runs'
        WHERE e.task IS NOT NULL OR r.state IS NOT NULL
        ORDER BY e.place) AS n;
    IF EXISTS (SELECT FROM listeners l WHERE l.id <> me AND l.until > clock_timestamp()) THEN
        PERFORM pg_notify('rota.' || current_schema(), json_build_object('from', me, 'events', true)::text);
    END IF;
END $$;

-- Record what a put or a fire made of runs: the decisions (`runs`, `reasons`), and the runs that it has ended. One that still
-- runs was asked to stop, because a new run replaces it. A run that was put before is not new: it was created or joined at
-- another time.
CREATE OR REPLACE FUNCTION record_put(
    me text, runs text[], reasons text[], ended text[], d_tasks text[], d_keys text[], d_reasons text[], d_runs text[], now float8
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    changed text[];
    names text[];
    whys text[];
    refused record;
BEGIN
    SELECT array_agg(d.run ORDER BY d.place), array_agg(CASE d.reason WHEN 'joined' THEN 'joined' ELSE 'queued' END ORDER BY d.place),
           array_agg(d.reason ORDER BY d.place)
    INTO changed, names, whys FROM unnest(runs, reasons) WITH ORDINALITY AS d (run, reason, place)
    WHERE EXISTS (SELECT FROM queue q WHERE q.id = d.run
                  AND (d.reason = 'accepted' AND q.created_at = now OR d.reason = 'joined' AND q.touched_at = now) OFFSET 0);
    PERFORM record_events(me, 'runs', names, changed, NULL, NULL, whys, NULL, now);
    PERFORM record_events(me, 'runs', array_fill('cancel_requested'::text, ARRAY[coalesce(cardinality(ended), 0)]), ended, NULL,
                          NULL, array_fill('cancelled'::text, ARRAY[coalesce(cardinality(ended), 0)]), NULL, now);
    SELECT array_agg(d.run ORDER BY d.place) AS runs, array_agg(d.task ORDER BY d.place) AS tasks,
           array_agg(d.key ORDER BY d.place) AS keys, array_agg(d.reason ORDER BY d.place) AS reasons
    INTO refused FROM unnest(d_runs, d_tasks, d_keys, d_reasons) WITH ORDINALITY AS d (run, task, key, reason, place)
    WHERE d.reason NOT IN ('joined', 'expired', 'cancelled');
    PERFORM record_events(me, 'runs', array_fill('refused'::text, ARRAY[coalesce(cardinality(refused.runs), 0)]), refused.runs,
                          refused.tasks, refused.keys, refused.reasons, NULL, now);
END $$;

-- Record what settlements made of the runs `touched`. A run that waits again was lost, is retried, or was given back.
CREATE OR REPLACE FUNCTION record_settled(
    me text, touched text[], s_id text[], s_worker text[], s_error text[], s_attempt text[], s_lost boolean[], now float8
) RETURNS void LANGUAGE plpgsql SET enable_hashjoin = on AS $$
DECLARE
    names text[];
    outcomes text[];
    workers_ text[];
BEGIN
    SELECT array_agg(s.name ORDER BY t.place), array_agg(s.outcome ORDER BY t.place), array_agg(s.worker ORDER BY t.place)
    INTO names, outcomes, workers_
    FROM unnest(touched) WITH ORDINALITY AS t (id, place) LEFT JOIN (
        SELECT DISTINCT ON (s.id) s.id, s.worker, ('{' || s.attempt || '}')::json ->> 'outcome' AS outcome,
               CASE WHEN s.lost THEN 'lost' WHEN s.error IS NOT NULL THEN 'retried' END AS name
        FROM unnest(s_id, s_worker, s_error, s_attempt, s_lost) AS s (id, worker, error, attempt, lost)) AS s ON s.id = t.id;
    PERFORM record_events(me, 'runs', names, touched, NULL, NULL, outcomes, workers_, now);
END $$;

-- Record what a command made of runs, tasks and schedules (`about`): of the runs `touched`, and of those of `subjects` for which
-- `answers` has a change. `of_task` and `of_key` are those of the changed subjects.
CREATE OR REPLACE FUNCTION record_controlled(
    me text, command text, about text, touched text[], subjects text[], answers integer[], of_task text[], of_key text[],
    why text, now float8
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    n integer := coalesce(cardinality(touched), 0);
    changed text[] := ARRAY(SELECT s.id FROM unnest(subjects, answers) WITH ORDINALITY AS s (id, changes, place)
                            WHERE s.changes > 0 ORDER BY s.place);
BEGIN
    PERFORM record_events(me, 'runs',
        array_fill(CASE WHEN command IN ('cancel', 'pause') THEN command || '_requested' ELSE why END, ARRAY[n]), touched,
        CASE WHEN command = 'delete' THEN of_task END, CASE WHEN command = 'delete' THEN of_key END,  -- a deleted run cannot be read
        array_fill(why, ARRAY[n]), NULL, now);
    IF about = 'schedules' OR about IN ('tasks', 'keys') AND command IN ('pause', 'resume') THEN
        PERFORM record_events(me, CASE about WHEN 'keys' THEN 'tasks' ELSE about END,
            array_fill(CASE WHEN command IN ('cancel', 'drop') THEN 'removed' ELSE why END, ARRAY[cardinality(changed)]),
            CASE about WHEN 'keys' THEN of_task ELSE changed END, of_task, of_key, NULL, NULL, now);
    END IF;
END $$;

-- Record that schedules have fired: what became of the last nominal time of each applied tick.
CREATE OR REPLACE FUNCTION record_fired(
    me text, ids text[], applied integer[], r_tick integer[], reasons text[], missed_reasons text[], now float8
) RETURNS void LANGUAGE plpgsql SET enable_hashjoin = on AS $$
DECLARE
    fired record;
BEGIN
    SELECT array_agg(s.id::text ORDER BY a.place) AS ids, array_agg(s.task::text ORDER BY a.place) AS tasks,
           array_agg(s.key::text ORDER BY a.place) AS keys,
           array_agg(coalesce(l.reason, missed_reasons[a.tick]) ORDER BY a.place) AS reasons
    INTO fired FROM unnest(applied) WITH ORDINALITY AS a (tick, place)
    CROSS JOIN LATERAL (
        SELECT s.id, s.task, s.key FROM schedules s WHERE s.id = ids[a.tick] ORDER BY s.change DESC LIMIT 1) AS s
    LEFT JOIN (
        SELECT r.tick, reasons[max(r.place)] AS reason FROM (
            SELECT t.tick, row_number() OVER (ORDER BY t.place)::integer AS place
            FROM unnest(r_tick) WITH ORDINALITY AS t (tick, place) WHERE t.tick = ANY(applied)) AS r
        GROUP BY r.tick) AS l ON l.tick = a.tick;
    PERFORM record_events(me, 'schedules', array_fill('fired'::text, ARRAY[cardinality(applied)]), fired.ids, fired.tasks,
                          fired.keys, fired.reasons, NULL, now);
END $$;

-- Record the tasks and schedules that a declaration has added or changed: `specs_` is NULL for a schedule.
CREATE OR REPLACE FUNCTION record_declared(
    me text, names text[], specs_ text[], of_task text[], of_key text[], answers text[], now float8
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    kind record;
BEGIN
    FOR kind IN
        SELECT CASE WHEN d.spec IS NULL THEN 'schedules' ELSE 'tasks' END AS about, array_agg(d.name ORDER BY d.place) AS ids,
               array_agg(coalesce(d.task, d.name) ORDER BY d.place) AS tasks, array_agg(d.key ORDER BY d.place) AS keys,
               array_agg(d.answer ORDER BY d.place) AS answers
        FROM unnest(names, specs_, of_task, of_key, answers) WITH ORDINALITY AS d (name, spec, task, key, answer, place)
        WHERE d.answer IN ('added', 'changed') GROUP BY d.spec IS NULL
    LOOP
        PERFORM record_events(me, kind.about, array_fill('declared'::text, ARRAY[cardinality(kind.ids)]), kind.ids,
                              kind.tasks, kind.keys, kind.answers, NULL, now);
    END LOOP;
END $$;

-- Record what a caller's own transaction (submit) did besides adding and joining runs, when it commits: it has refused a run,
-- or ended expired ones (`rota.ended`). An event that it recorded before would hold back all others until it ends.
CREATE OR REPLACE FUNCTION record_at_commit() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now float8 := now_of(coalesce(nullif(current_setting('rota.open', true), '')::float8, 0), 0, false);
    ended text := coalesce(current_setting('rota.ended', true), '');
BEGIN
    IF (SELECT r.last_value FROM record_until r) <= now * {PER_SECOND} THEN RETURN NULL; END IF;
    IF ended <> '' THEN
        PERFORM set_config('rota.ended', '', true);
        PERFORM record_events('', 'runs', array_fill('cancel_requested'::text, ARRAY[cardinality(ended::text[])]), ended::text[],
                              NULL, NULL, array_fill('cancelled'::text, ARRAY[cardinality(ended::text[])]), NULL, now);
    END IF;
    IF NEW.reason NOT IN ('joined', 'expired', 'cancelled') THEN
        PERFORM record_events('', 'runs', ARRAY['refused'], ARRAY[NEW.run], ARRAY[NEW.task::text], ARRAY[NEW.key::text],
                              ARRAY[NEW.reason::text], NULL, now);
    END IF;
    RETURN NULL;
END $$;

-- The transactions under way that write tables of this schema, except those of callers: these record at their commit.
CREATE OR REPLACE FUNCTION writers() RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(SELECT DISTINCT l.virtualtransaction FROM pg_locks l
        WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.granted AND l.relation = ANY(
            '{queue,leases,finished,specs,schedules,decisions}'::regclass[]::oid[])
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
          AND NOT EXISTS (SELECT FROM pg_locks o WHERE o.virtualtransaction = l.virtualtransaction AND o.locktype = 'advisory'
              AND o.objsubid = 2 AND o.classid::bigint = lock_class('open')::bigint & 4294967295));
END $$;

-- Begin to record events, after a time without. No cursor from before is of use: `events_from` becomes the number after which
-- events are complete.
-- Race: a verb may have looked at `record_until` before, and commit later. So this waits for the end of all writes under way,
-- at most five seconds. Lock order: nobody who waits for the lock holds a row.
CREATE OR REPLACE FUNCTION begin_recording(now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    under_way text[];
BEGIN
    PERFORM pg_advisory_xact_lock(lock_class('recording'), 0);
    IF (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} THEN RETURN; END IF;
    PERFORM setval('events_from', nextval('event_numbers'));
    PERFORM setval('record_until', ((now + {SUBSCRIBED}) * {PER_SECOND})::bigint);
    under_way := writers();
    FOR i IN 1 .. 500 LOOP
        EXIT WHEN NOT under_way && writers();
        PERFORM pg_sleep(0.01);
    END LOOP;
    PERFORM setval('events_from', nextval('event_numbers'));
END $$;

-- Events after the number `known`, at most `most`, as JSON; NULL: begin now. `missing`: events after `known` are not known any
-- more. `last`: where the next read begins.
-- Race: a sweep raises `events_gone` before it deletes events, so this reads the events before it reads `events_gone`.
CREATE OR REPLACE FUNCTION read_events(
    me text, skew float8, seen float8, known bigint, most integer,
    OUT now float8, OUT last bigint, OUT gone bigint, OUT missing boolean, OUT page text
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    record_for float8;
    start bigint;
    highest bigint;
    rows_found bigint;
BEGIN
    now := now_of(skew, seen, false);
    record_for := (SELECT r.last_value FROM record_until r) / {PER_SECOND}::float8 - now;
    IF record_for <= 0 THEN
        PERFORM begin_recording(now);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(lock_class('recording'), 0);  -- wait for `begin_recording` of another reader
        IF record_for < {SUBSCRIBED} / 2 THEN PERFORM setval('record_until', ((now + {SUBSCRIBED}) * {PER_SECOND})::bigint); END IF;
    END IF;
    last := (SELECT n.last_value FROM event_numbers n);
    highest := last;
    last := settled_events(last);
    gone := (SELECT greatest(f.last_value, g.last_value) FROM events_from f, events_gone g);
    start := CASE WHEN known IS NULL THEN last WHEN known BETWEEN gone AND highest THEN known ELSE gone END;
    SELECT json_agg(json_build_array(e.number, json_build_array(e.at, e.name, e.about, e.id, e.task, e.key, e.state, e.reason,
               e.fence, e.worker, e.grp)) ORDER BY e.number)::text, count(*), max(e.number)
    INTO page, rows_found, highest
    FROM (SELECT * FROM events e WHERE e.number > start AND e.number <= last ORDER BY e.number LIMIT most) AS e;
    IF rows_found = most THEN last := highest; ELSE last := greatest(last, start); END IF;
    gone := (SELECT greatest(f.last_value, g.last_value) FROM events_from f, events_gone g);
    missing := known IS NOT NULL AND (start <> known OR gone > start);
END $$;

-- Delete old events, at most {FORGOTTEN_AT_ONCE}. Returns whether more may be left. A look begins at `events_gone`: dead rows
-- are below it.
CREATE OR REPLACE FUNCTION forget_events(now float8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    swept bigint := (SELECT g.last_value FROM events_gone g);
    cut bigint;
BEGIN
    SELECT max(e.number) INTO cut FROM (
        SELECT e.number, e.at FROM events e WHERE e.number > swept ORDER BY e.number LIMIT {FORGOTTEN_AT_ONCE}) AS e
    WHERE e.at <= now - {EVENT_MEMORY} OR e.number <= (SELECT n.last_value FROM event_numbers n) - {EVENTS_KEPT}
       OR e.number <= (SELECT f.last_value FROM events_from f);
    IF cut IS NULL THEN RETURN false; END IF;
    PERFORM setval('events_gone', cut);
    DELETE FROM events e WHERE e.number > swept AND e.number <= cut;
    RETURN (SELECT count(*) FROM (SELECT FROM events e WHERE e.number > cut AND e.at <= now - {EVENT_MEMORY} LIMIT 1) AS e) > 0;
END $$;
