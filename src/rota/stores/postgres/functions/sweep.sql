-- twin: rota/stores/retention.py
-- sweep: end expired runs, and delete old runs, marks, decisions, schedules, rates, stats, listeners and workers. The work of one
-- call is bounded.

-- Delete ended runs of one task, at most `at_once`, and return how many. No run that ended after `memory` is deleted. A run is
-- deleted if `most` newer runs are kept, or if it is older than its state allows and `fewest` newer runs are kept. Runs that
-- were settled together ended at the same time: then `seq` decides which run is newer. If `bound` is given, the floor of the
-- ended runs of the task is raised to it (functions/floors.sql).
CREATE OR REPLACE FUNCTION forget(
    which text, memory float8, old_succeeded float8, old_failed float8, most integer, fewest integer, at_once integer,
    bound float8, now float8
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    task_floor float8 := floor_of(4::smallint, which, 0::smallint);
    most_at float8 := -1; most_seq bigint := -1; least_at float8 := -1; least_seq bigint := -1;
    gone bigint;
    fanned boolean := EXISTS (SELECT FROM fans);
BEGIN
    SELECT f.finished_at, f.seq INTO most_at, most_seq FROM finished f WHERE f.task = which AND f.finished_at >= task_floor
    ORDER BY f.finished_at DESC, f.seq DESC LIMIT 1 OFFSET most;
    SELECT f.finished_at, f.seq INTO least_at, least_seq FROM finished f WHERE f.task = which AND f.finished_at >= task_floor
    ORDER BY f.finished_at DESC, f.seq DESC LIMIT 1 OFFSET fewest;
    WITH forgotten AS (
        DELETE FROM finished WHERE id = ANY(ARRAY(
            SELECT f.id FROM finished f
            WHERE f.task = which AND f.finished_at BETWEEN task_floor AND memory
              AND ((f.finished_at, f.seq) <= (most_at, most_seq)
                   OR ((f.finished_at, f.seq) <= (least_at, least_seq)
                       AND f.finished_at <= CASE f.state WHEN 'succeeded' THEN old_succeeded ELSE old_failed END))
              AND NOT (fanned AND is_kept(f.id))
            ORDER BY f.finished_at LIMIT at_once FOR UPDATE SKIP LOCKED)) RETURNING id, state, finished_at
    ), stubs AS (
        UPDATE ids SET state = f.state, ended_at = f.finished_at FROM forgotten f WHERE ids.id = f.id
    ), alone AS (
        DELETE FROM grouped g USING forgotten f WHERE g.run = f.id
    )
    SELECT count(*) INTO gone FROM forgotten;
    IF bound IS NOT NULL THEN
        PERFORM raise_floor(4::smallint, which, 0::smallint, (
            SELECT f.finished_at FROM finished f WHERE f.task = which AND f.finished_at BETWEEN task_floor AND bound
            ORDER BY f.finished_at LIMIT 1), bound, now);
    END IF;
    RETURN gone;
END $$;

-- Forget the queues in which a task has no run, if there are more than {QUEUES_KEPT}: a claim of all queues looks into each. One
-- statement looks everywhere, because runs move from table to table meanwhile. Lock order: it waits for no lock, and puts into
-- queues wait for it (know_queues), so it is the last act of a sweep.
CREATE OR REPLACE FUNCTION forget_queues() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    leases_floor float8;
    which text;
BEGIN
    IF (SELECT count(*) FROM (SELECT FROM task_queues t WHERE t.task >= '' LIMIT {QUEUES_KEPT} + 1) AS first) <= {QUEUES_KEPT}
        OR NOT pg_try_advisory_xact_lock(lock_class('queues'), 0) THEN RETURN; END IF;
    leases_floor := floor_of(2::smallint, '', 0::smallint);
    FOR which IN SELECT DISTINCT t.task::text FROM task_queues t WHERE t.task >= '' LOOP
        DELETE FROM task_queues WHERE ctid = ANY(ARRAY(
            WITH used AS MATERIALIZED (
                SELECT l.queue FROM leases l WHERE l.until >= leases_floor AND l.task = which UNION
                SELECT q.queue FROM queue q WHERE q.hold = 1 AND q.task = which UNION
                SELECT q.queue FROM queue q WHERE q.hold > 1 AND q.task = which)
            SELECT t.ctid FROM task_queues t
            WHERE t.task = which AND t.queue NOT IN (SELECT u.queue FROM used u)
              AND NOT EXISTS (SELECT FROM lanes(ARRAY[which], ARRAY[t.queue::text]) AS lane WHERE lane.head IS NOT NULL)));
    END LOOP;
END $$;

-- `succeeded`, `failed`: seconds for which ended runs are kept; `most`, `fewest`: see `forget`. A task may say other numbers
-- in its spec (`keep`). `more`: a bound was reached, so
-- sweep again. Lock order: specs (3); all other rows are locked SKIP LOCKED.
CREATE OR REPLACE FUNCTION sweep(
    me text, skew float8, seen float8, succeeded float8, failed float8, most integer, fewest integer,
    OUT now float8, OUT hinted text[], OUT touched text[], OUT forgotten bigint, OUT more boolean
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    expiry_floor float8;
    bound float8;
    late text[];
    tasks text[];
    dues float8[];
    which text;
    kept json;
BEGIN
    now := now_of(skew, seen, true);
    WITH gone AS (
        DELETE FROM worker_states WHERE ctid = ANY(ARRAY(
            SELECT s.ctid FROM workers_seen w CROSS JOIN LATERAL (
                SELECT s.ctid FROM worker_states s WHERE s.name = w.name AND s.version = w.version FOR UPDATE SKIP LOCKED) AS s
            WHERE w.seen_at <= now - {WORKER_MEMORY})) RETURNING name
    )
    DELETE FROM workers WHERE name = ANY(ARRAY(SELECT g.name FROM gone g));
    expiry_floor := floor_of(1::smallint, '', 0::smallint);
    late := ARRAY(SELECT q.id FROM queue q
                  WHERE q.expires_at BETWEEN expiry_floor AND now AND q.hold <> 3 ORDER BY q.expires_at LIMIT {EXPIRED_AT_ONCE});
    touched := '{}'; forgotten := 0; more := false;
    IF late <> '{}' THEN
        PERFORM lock_gates(ARRAY(SELECT DISTINCT q.task::text FROM queue q WHERE q.id = ANY(late)));
        now := now_of(skew, seen, false);
        SELECT e.touched, e.tasks, e.dues INTO touched, tasks, dues FROM expire(late, now) e;
        more := cardinality(touched) = {EXPIRED_AT_ONCE};
    END IF;
    FOR which IN  -- the marks of a task are kept as long as a guard of the task may read them
        WITH RECURSIVE tasks_with_marks (task) AS (
            SELECT (SELECT m.task FROM marks m ORDER BY m.task LIMIT 1)
            UNION ALL
            SELECT (SELECT m.task FROM marks m WHERE m.task > tasks_with_marks.task ORDER BY m.task LIMIT 1)
            FROM tasks_with_marks WHERE tasks_with_marks.task IS NOT NULL)
        SELECT task FROM tasks_with_marks WHERE task IS NOT NULL
    LOOP
        DELETE FROM marks WHERE ctid = ANY(ARRAY(SELECT m.ctid FROM marks m WHERE m.task = which
            AND m.finished_at <= now - coalesce((SELECT s.mark_memory FROM specs s WHERE s.name = which), {MARK_MEMORY})
            FOR UPDATE SKIP LOCKED));
    END LOOP;
    -- A row that another verb has locked is skipped: it is no longer old, or the next sweep deletes it.
    WITH old AS (
        DELETE FROM decisions WHERE ctid = ANY(ARRAY(
            SELECT d.ctid FROM decisions d WHERE d.last_at <= now - {MARK_MEMORY} FOR UPDATE SKIP LOCKED)) RETURNING task, key, reason
    )
    DELETE FROM decision_ids i USING old WHERE i.task = old.task AND i.key = old.key AND i.reason = old.reason;
    WITH over AS (
        DELETE FROM schedules WHERE ctid = ANY(ARRAY(
            SELECT s.ctid FROM schedules s WHERE s.next_at IS NULL AND s.owner = '' AND s.since <= now - {MARK_MEMORY}
              AND coalesce(s.last_at, s.since) <= now - {MARK_MEMORY} FOR UPDATE SKIP LOCKED)) RETURNING id
    )
    DELETE FROM schedule_ids i USING over WHERE i.id = over.id;
    DELETE FROM rates WHERE ctid = ANY(ARRAY(
        SELECT r.ctid FROM rates r WHERE r.full_at <= now - {ID_MEMORY} AND r.opens_at IS NULL FOR UPDATE SKIP LOCKED));
    DELETE FROM turns WHERE ctid = ANY(ARRAY(
        SELECT t.ctid FROM turns t WHERE NOT EXISTS (SELECT FROM queue q WHERE q.task = t.task) FOR UPDATE SKIP LOCKED));
    DELETE FROM running WHERE ctid = ANY(ARRAY(
        SELECT r.ctid FROM running r WHERE r.n = 0 AND r.changed_at <= now - {ID_MEMORY} FOR UPDATE SKIP LOCKED));
    DELETE FROM fans WHERE ctid = ANY(ARRAY(  -- the gather of a new fan may not be there yet
        SELECT f.ctid FROM fans f
        WHERE CASE WHEN EXISTS (SELECT FROM queue q WHERE q.id = f.id || '.all' UNION ALL
                                SELECT FROM leases l WHERE l.id = f.id || '.all') THEN false
                   ELSE f.created_at <= now - {ID_MEMORY} OR EXISTS (SELECT FROM finished r WHERE r.id = f.id || '.all') END
        FOR UPDATE SKIP LOCKED));
    DELETE FROM ids WHERE ctid = ANY(ARRAY(
        SELECT i.ctid FROM ids i WHERE i.ended_at <= now - {OWN_ID_MEMORY} FOR UPDATE SKIP LOCKED));
    DELETE FROM rollups WHERE ctid = ANY(ARRAY(
        SELECT r.ctid FROM unnest(ARRAY[{slot_lengths}], ARRAY[{slots_kept}]) AS s (every, kept)
        CROSS JOIN LATERAL (SELECT t.ctid FROM rollups t WHERE t.every = s.every AND t.minute <= floor(now / 60)::bigint - s.kept
                            FOR UPDATE SKIP LOCKED) AS r));
    PERFORM fold_totals(now);
    DELETE FROM listeners WHERE ctid = ANY(ARRAY(
        SELECT l.ctid FROM listeners l WHERE l.until < clock_timestamp() FOR UPDATE SKIP LOCKED));
    IF pg_try_advisory_xact_lock(lock_class('floors'), 0) THEN bound := horizon(now); END IF;
    FOR which IN  -- the latest ended run of each task first: dead rows are behind it
        WITH RECURSIVE ended (task) AS (
            SELECT (SELECT f.task FROM finished f ORDER BY f.task DESC, f.finished_at DESC LIMIT 1)
            UNION ALL
            SELECT (SELECT f.task FROM finished f WHERE f.task < ended.task ORDER BY f.task DESC, f.finished_at DESC LIMIT 1)
            FROM ended WHERE ended.task IS NOT NULL)
        SELECT task FROM ended WHERE task IS NOT NULL
    LOOP
        SELECT s.spec::json -> 'keep' INTO kept FROM (SELECT which AS name) AS t LEFT JOIN specs s ON s.name = t.name;
        forgotten := forgotten + forget(which, now - {ID_MEMORY}, now - coalesce((kept ->> 'succeeded')::float8, succeeded),
                                        now - coalesce((kept ->> 'failed')::float8, failed),
                                        coalesce((kept ->> 'most')::integer, most), coalesce((kept ->> 'least')::integer, fewest),
                                        ({FORGOTTEN_AT_ONCE} - forgotten)::integer, bound, now);
        IF forgotten >= {FORGOTTEN_AT_ONCE} THEN
            more := true;
            EXIT;
        END IF;
    END LOOP;
    more := forget_events(now) OR more;
    hinted := to_hint(tasks, dues, now);
    IF (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} THEN
        PERFORM record_events(me, 'runs', NULL, touched, NULL, NULL, NULL, NULL, now);
    END IF;
    PERFORM send_hints(me, hinted, touched);
    PERFORM forget_queues();
END $$;
