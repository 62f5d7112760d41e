-- claim: the best due runs that may start now, for one worker; and what any worker may look after.

-- What a claim answers: a header, and a run or a schedule (its id, and all of it as JSON in its header) per row.
CREATE VIEW claimed AS SELECT NULL::text AS kind, NULL::text AS name, NULL::text AS header, r.* FROM runs r;

CREATE FUNCTION as_json(s schedules) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT '[' || s.declared || ',' || json_build_array(s.anchor, s.next_at, s.fires_at, s.version, s.since, s.paused,
        s.note)::text || ',[' || array_to_string(s.recent, ',') || ']]'
$$;

-- The best `most` of these lanes, judged by the gates of their tasks: taken (into leases), parked, or neither because
-- nothing of the task may start now. Gates are locked by the caller, so what they count stands still. How many of a key
-- may start is its room: within one claim, that many of its first runs pass, and the others are parked.
CREATE FUNCTION take(
    who text, num bigint, l_tasks text[], l_priorities smallint[], gates text[], most integer, look integer,
    suspects boolean, seconds float8, now float8,
    OUT taken text[], OUT parked text[], OUT shut text[], OUT losses_of_first integer, OUT skipped boolean
) LANGUAGE plpgsql AS $$
DECLARE
    best text[];
    few integer := CASE WHEN gates = '{}' THEN most ELSE look END;
BEGIN
    best := ARRAY(
        SELECT q.id FROM unnest(l_tasks, l_priorities) AS lane (task, priority) CROSS JOIN LATERAL (
            SELECT q.id, q.priority, q.due_at, q.seq FROM queue q
            WHERE q.hold = 0 AND q.task = lane.task AND q.priority = lane.priority AND q.due_at <= now
              AND (q.expires_at IS NULL OR q.expires_at > now) AND (suspects OR q.losses = 0)
            ORDER BY q.due_at, q.seq LIMIT look) AS q
        ORDER BY q.priority DESC, q.due_at, q.seq LIMIT look);
    WITH ours AS MATERIALIZED (  -- as many as can be used, in their order; those that others hold are passed over
        SELECT q.id, q.task, q.key, q.losses, q.priority, q.due_at, q.seq FROM queue q
        WHERE q.id = ANY(best) AND q.hold = 0 ORDER BY q.priority DESC, q.due_at, q.seq LIMIT few FOR UPDATE SKIP LOCKED
    ), ranked AS (
        SELECT o.*, row_number() OVER (ORDER BY o.priority DESC, o.due_at, o.seq) AS rank,
               row_number() OVER (PARTITION BY o.task, o.key ORDER BY o.priority DESC, o.due_at, o.seq) AS key_place,
               row_number() OVER (PARTITION BY o.task ORDER BY o.priority DESC, o.due_at, o.seq) AS task_rank
        FROM ours o
    ), roomed AS (  -- looked up once per key and per task, with the first run of each
        SELECT d.*, CASE WHEN d.key_place = 1 AND d.key IS NOT NULL AND d.task = ANY(gates) THEN (
            SELECT least(
                g.per_key - (SELECT count(*) FROM leases l WHERE l.gated AND l.task = d.task AND l.key = d.key),
                CASE WHEN g.rate_per_key THEN tokens(coalesce((
                    SELECT r.full_at FROM rates r WHERE r.task = d.task AND r.key = d.key), 0),
                    g.rate_interval, g.rate_burst, now) END)
            FROM specs g WHERE g.name = d.task) END AS key_room,
        CASE WHEN d.task_rank = 1 AND d.task = ANY(gates) THEN (
            SELECT least(
                g.total - (SELECT count(*) FROM leases l WHERE g.total IS NOT NULL AND l.gated AND l.task = d.task),
                CASE WHEN NOT g.rate_per_key THEN tokens(coalesce((
                    SELECT r.full_at FROM rates r WHERE r.task = d.task AND r.key = ''), 0),
                    g.rate_interval, g.rate_burst, now) END)
            FROM specs g WHERE g.name = d.task) END AS task_room
        FROM ranked d
    ), by_key AS (
        SELECT d.*, coalesce(d.key_place <= max(d.key_room) OVER (PARTITION BY d.task, d.key), true) AS passes,
               max(d.task_room) OVER (PARTITION BY d.task) AS task_n
        FROM roomed d
    ), by_task AS (
        SELECT d.*, count(*) FILTER (WHERE d.passes) OVER (PARTITION BY d.task ORDER BY d.rank) AS task_place
        FROM by_key d
    ), judged AS (
        SELECT d.*, d.passes AND (d.task_n IS NULL OR d.task_place <= d.task_n) AS starts,
               NOT d.passes AND (d.task_n IS NULL OR d.task_place < d.task_n) AS waits
        FROM by_task d
    ), placed AS (
        SELECT d.*, count(*) FILTER (WHERE d.starts) OVER (ORDER BY d.rank) AS place FROM judged d
    )
    SELECT array_agg(p.id::text ORDER BY p.rank) FILTER (WHERE p.starts AND p.place <= most),
           array_agg(p.id::text) FILTER (WHERE p.waits AND p.place < most),
           array_agg(DISTINCT p.task::text) FILTER (WHERE NOT p.starts AND NOT p.waits),
           (array_agg(p.losses ORDER BY p.rank) FILTER (WHERE p.starts AND p.place <= most))[1],
           count(*) < least(cardinality(best), few)
    INTO taken, parked, shut, losses_of_first, skipped FROM placed p;
    IF losses_of_first > 0 THEN taken := taken[1:1]; END IF;
    IF suspects AND coalesce(losses_of_first, 0) = 0 THEN
        taken := NULL; parked := NULL;  -- only looked for a suspect in front
        RETURN;
    END IF;
    UPDATE queue SET hold = 1 WHERE id = ANY(parked);
    PERFORM lease(who, num, taken, gates, seconds, now);
    IF gates <> '{}' THEN PERFORM spend(taken, parked, gates, now); END IF;
END $$;

CREATE FUNCTION lease(who text, num bigint, ids text[], gates text[], seconds float8, now float8) RETURNS void
LANGUAGE sql AS $$
    WITH gone AS (DELETE FROM queue WHERE id = ANY(ids) RETURNING *)
    INSERT INTO leases (seq, priority, fence, failures, losses, claim_n, created_at, due_at, claimed_at, until,
        expires_at, marked, awaited, gated, id, task, key, unique_key, worker, body, needs, rest, attempts, note, error,
        progress, saved)
    SELECT g.seq, g.priority, g.fence + 1, g.failures, g.losses, num, g.created_at, g.due_at, now, after(now, seconds),
        g.expires_at, g.marked, g.awaited, g.task = ANY(gates), g.id, g.task, g.key, g.unique_key, who, g.body,
        g.needs, g.rest, g.attempts, g.note, g.error, g.progress, g.saved
    FROM gone g
$$;

-- Starts cost tokens; a key whose runs are parked for want of one is let go when the next comes.
CREATE FUNCTION spend(taken text[], parked text[], gates text[], now float8) RETURNS void LANGUAGE sql AS $$
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

-- Rounds of taking: what is parked or shut makes way for what stands behind it. At most 1,000 are parked at once, so
-- that the work is bounded; then `again` says that there may be more to take.
CREATE FUNCTION take_all(
    who text, num bigint, unpaused text[], gates text[], free integer, seconds float8, now float8,
    OUT batch text[], OUT passed_over boolean, OUT again boolean
) LANGUAGE plpgsql AS $$
DECLARE
    l_tasks text[];
    l_priorities smallint[];
    alone boolean;
    suspects boolean;
    got record;
    look integer;
    wider integer := 0;
    parked integer := 0;
BEGIN
    batch := '{}'; passed_over := false; again := false;
    SELECT array_agg(l.task), array_agg(l.priority) INTO l_tasks, l_priorities FROM lanes(unpaused) l WHERE l.head <= now;
    IF l_tasks IS NULL THEN RETURN; END IF;
    alone := NOT EXISTS (SELECT FROM leases l WHERE l.worker = who AND l.losses > 0);
    suspects := EXISTS (SELECT FROM queue q WHERE q.losses > 0 AND q.hold = 0 AND q.task = ANY(l_tasks)
                        AND q.due_at <= now);
    IF cardinality(l_tasks) = 1 AND l_tasks[1] <> ALL(gates) AND NOT suspects THEN
        batch := take_lane(who, num, l_tasks[1], l_priorities[1], free, seconds, now);
        passed_over := NOT alone;
        RETURN;
    END IF;
    IF suspects AND alone THEN
        SELECT * INTO got FROM take(who, num, l_tasks, l_priorities, gates, 1, 200, true, seconds, now);
        IF got.taken IS NOT NULL THEN
            batch := got.taken; passed_over := true; again := true;
            RETURN;
        END IF;
    END IF;
    WHILE cardinality(batch) < free AND parked < 1000 LOOP
        look := CASE WHEN parked = 0 THEN free - cardinality(batch) ELSE free + 200 END + wider * (free + 100);
        IF gates <> '{}' THEN look := least(look, 1000 - parked); END IF;
        SELECT * INTO got FROM take(who, num, l_tasks, l_priorities, gates, free - cardinality(batch), look, false,
                                    seconds, now);
        EXIT WHEN got.taken IS NULL AND got.parked IS NULL AND got.shut IS NULL AND (NOT got.skipped OR wider > 5);
        wider := wider + got.skipped::integer;  -- others are taking those: look behind them
        batch := batch || got.taken;
        parked := parked + coalesce(cardinality(got.parked), 0);
        IF got.shut IS NOT NULL THEN
            SELECT array_agg(l.task), array_agg(l.priority) INTO l_tasks, l_priorities
            FROM unnest(l_tasks, l_priorities) AS l (task, priority) WHERE l.task <> ALL(got.shut);
            EXIT WHEN l_tasks IS NULL;
        END IF;
    END LOOP;
    again := parked >= 1000;
    passed_over := NOT alone OR (suspects AND (cardinality(batch) < free OR EXISTS (
        SELECT FROM queue q, leases l
        WHERE q.losses > 0 AND q.hold = 0 AND q.task = ANY(l_tasks) AND q.due_at <= now AND l.id = batch[cardinality(batch)]
          AND (-q.priority, q.due_at, q.seq) < (-l.priority, l.due_at, l.seq))));
END $$;

-- The common case, in one statement: one lane, no gate, nobody under suspicion. What another claim is taking right now
-- is passed over, not waited for.
CREATE FUNCTION take_lane(
    who text, num bigint, which text, level smallint, free integer, seconds float8, now float8
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    batch text[];
BEGIN
    WITH gone AS (
        DELETE FROM queue WHERE ctid = ANY(ARRAY(
            SELECT q.ctid FROM queue q
            WHERE q.hold = 0 AND q.task = which AND q.priority = level AND q.due_at <= now
              AND (q.expires_at IS NULL OR q.expires_at > now)
            ORDER BY q.due_at, q.seq LIMIT free FOR UPDATE SKIP LOCKED)) RETURNING *
    ), kept AS (
        INSERT INTO leases (seq, priority, fence, failures, losses, claim_n, created_at, due_at, claimed_at, until,
            expires_at, marked, awaited, id, task, key, unique_key, worker, body, needs, rest, attempts, note, error,
            progress, saved)
        SELECT g.seq, g.priority, g.fence + 1, g.failures, g.losses, num, g.created_at, g.due_at, now,
            after(now, seconds), g.expires_at, g.marked, g.awaited, g.id, g.task, g.key, g.unique_key, who, g.body,
            g.needs, g.rest, g.attempts, g.note, g.error, g.progress, g.saved
        FROM gone g
    )
    SELECT array_agg(g.id::text ORDER BY g.due_at, g.seq) INTO batch FROM gone g;
    RETURN coalesce(batch, '{}');
END $$;

-- When this worker should look again: the first of what is coming for which too few others wake. Not simply the
-- (number of others + 1)-th: workers that look again would all move to the last one.
CREATE FUNCTION wake_of(who text, known text[], unpaused text[], again boolean, now float8) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
    others float8[];
    l_tasks text[];
    l_priorities smallint[];
    due text[];
    place integer := 0;
    coming float8;
BEGIN
    SELECT array_agg(l.task), array_agg(l.priority), array_agg(l.task) FILTER (WHERE l.head <= now)
    INTO l_tasks, l_priorities, due FROM lanes(unpaused) l;
    IF again AND due IS NOT NULL THEN
        RETURN now;  -- this claim ended early, or was a repeated one: what is due waits for the next
    END IF;
    others := ARRAY(SELECT w.wake_at FROM workers w WHERE w.idle = 1 AND w.name <> who AND w.seen_at > now - 15
                    AND w.wake_at > now AND w.tasks && known);
    FOR coming IN
        SELECT c.at FROM (
            (SELECT q.due_at AS at FROM unnest(l_tasks, l_priorities) AS l (task, priority) CROSS JOIN LATERAL (
                SELECT q.due_at FROM queue q
                WHERE q.hold = 0 AND q.task = l.task AND q.priority = l.priority AND q.due_at > now
                ORDER BY q.due_at LIMIT cardinality(others) + 1) AS q
             ORDER BY q.due_at LIMIT cardinality(others) + 1)
            UNION ALL
            (SELECT min(s.look_at) FROM schedules s WHERE s.look_at IS NOT NULL)
            UNION ALL
            (SELECT least(
                (SELECT min(r.opens_at) FROM rates r WHERE r.opens_at IS NOT NULL AND r.task = ANY(unpaused)),
                (SELECT min(r.full_at - (s.rate_burst - 1) * s.rate_interval) FROM specs s JOIN rates r
                 ON r.task = s.name AND r.key = '' WHERE s.name = ANY(due) AND NOT s.rate_per_key
                 AND r.full_at - (s.rate_burst - 1) * s.rate_interval > now)))
        ) AS c WHERE c.at IS NOT NULL ORDER BY c.at
    LOOP
        IF (SELECT count(*) FROM unnest(others) AS o WHERE o <= coming) <= place THEN RETURN coming; END IF;
        place := place + 1;
    END LOOP;
    RETURN NULL;
END $$;

CREATE FUNCTION added(one bigint[], two bigint[]) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(coalesce(a, 0) + coalesce(b, 0) ORDER BY place), '{}')
    FROM unnest(one, two) WITH ORDINALITY AS t (a, b, place)
$$;

-- End queued runs that are too late to start, as far as nobody is changing them right now.
CREATE FUNCTION expire(late text[], now float8, OUT touched text[], OUT tasks text[], OUT dues float8[])
LANGUAGE plpgsql AS $$
DECLARE
    gone record;
BEGIN
    SELECT * INTO gone FROM end_waiting(ARRAY(
        SELECT q.id FROM queue q WHERE q.id = ANY(late) AND q.hold <> 3 AND q.expires_at <= now
        ORDER BY q.id FOR UPDATE SKIP LOCKED), 'expired', NULL, now);
    touched := coalesce(gone.ended, '{}'); tasks := gone.tasks; dues := gone.dues;
    PERFORM decide(gone.of_task, gone.of_key, array_fill('expired'::text, ARRAY[cardinality(touched)]), NULL,
                   touched, NULL, NULL, now);
END $$;

-- Parked runs of keys that their rate held up, where its time has come.
CREATE FUNCTION let_go(now float8, OUT tasks text[], OUT dues float8[]) LANGUAGE plpgsql AS $$
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

-- A full worker fires schedules only where no idle one wakes for them in time.
CREATE FUNCTION next_schedule(who text, now float8) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    fires float8 := (SELECT min(s.look_at) FROM schedules s WHERE s.look_at IS NOT NULL);
BEGIN
    IF EXISTS (SELECT FROM workers w WHERE w.idle = 1 AND w.name <> who AND w.seen_at > now - 15
               AND w.wake_at <= greatest(fires, now)) THEN
        RETURN NULL;
    END IF;
    RETURN fires;
END $$;

CREATE FUNCTION chart(now float8, t_tasks text[], t_counts text[], t_waits text[], t_durations text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    tally record;
BEGIN
    FOR tally IN SELECT * FROM unnest(t_tasks, t_counts, t_waits, t_durations) AS t (task, counts, waits, durations)
                 ORDER BY t.task COLLATE "C" LOOP
        INSERT INTO stats AS s (minute, task, counts, waits, durations)
        VALUES (floor(now / 60)::bigint, tally.task, tally.counts::bigint[], tally.waits::bigint[],
                tally.durations::bigint[])
        ON CONFLICT (minute, task) DO UPDATE SET counts = added(s.counts, excluded.counts),
            waits = added(s.waits, excluded.waits), durations = added(s.durations, excluded.durations);
    END LOOP;
END $$;

-- The answer comes as rows: one header, then the runs of the batch, the lapsed leases and the due schedules.
CREATE FUNCTION claim(
    me text, skew float8, seen float8, who text, num bigint, known text[], free integer, seconds float8,
    report_ text, t_tasks text[], t_counts text[], t_waits text[], t_durations text[]
) RETURNS SETOF claimed
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now float8;
    last bigint;
    took text[];
    unpaused text[];
    late text[];
    opened text[];
    gates text[] := '{}';
    tasks text[] := '{}';
    dues float8[] := '{}';
    more record;
    touched text[];
    hinted text[];
    passed_over boolean := false;
    again boolean := false;
    fresh boolean;
    answered bigint;
    wake float8;
BEGIN
    SELECT w.n, w.batch INTO last, took FROM workers w WHERE w.name = who FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        INSERT INTO workers (name, n, tasks, seen_at, idle) VALUES (who, 0, known, 0, 0) ON CONFLICT DO NOTHING;
        SELECT w.n, w.batch INTO last, took FROM workers w WHERE w.name = who FOR NO KEY UPDATE;
    END IF;
    fresh := num > last;
    now := now_of(skew, seen, true);
    unpaused := ARRAY(SELECT t FROM unnest(known) t
                      WHERE NOT EXISTS (SELECT FROM specs s WHERE s.name = t AND s.paused));
    late := ARRAY(SELECT q.id FROM queue q WHERE q.expires_at <= now AND q.hold <> 3 ORDER BY q.expires_at LIMIT 1000);
    opened := ARRAY(SELECT DISTINCT r.task FROM rates r WHERE r.opens_at <= now);
    IF EXISTS (SELECT FROM specs s WHERE s.gated) THEN
        gates := lock_gates(opened
            || ARRAY(SELECT DISTINCT q.task::text FROM queue q WHERE q.id = ANY(late))
            || ARRAY(SELECT DISTINCT c.task::text FROM queue q  -- and of those that wait for their end
                     JOIN waits w ON w.ended = ANY(ARRAY[q.id, '*' || q.task || ' ' || coalesce(q.unique_key, q.key, '')])
                     JOIN queue c ON c.id = w.run WHERE q.id = ANY(late))
            || ARRAY(SELECT l.task FROM lanes(ARRAY(SELECT s.name::text FROM specs s
                                                    WHERE s.gated AND s.name = ANY(unpaused))) l WHERE l.head <= now));
        now := now_of(skew, seen, false);
    END IF;
    IF late <> '{}' THEN
        SELECT e.touched, e.tasks, e.dues INTO touched, tasks, dues FROM expire(late, now) e;
    END IF;
    IF fresh THEN
        took := '{}';
        IF opened <> '{}' THEN
            SELECT * INTO more FROM let_go(now);
            tasks := tasks || more.tasks;
            dues := dues || more.dues;
        END IF;
        IF free > 0 THEN
            -- A gated task that is not locked has come to its work only since: the next claim is for it.
            SELECT t.batch, t.passed_over, t.again INTO took, passed_over, again
            FROM take_all(who, num, ARRAY(SELECT u FROM unnest(unpaused) u WHERE u = ANY(gates)
                OR NOT EXISTS (SELECT FROM specs s WHERE s.name = u AND s.gated)), gates, free, seconds, now) t;
        END IF;
    END IF;
    IF NOT fresh THEN
        took := ARRAY(SELECT l.id FROM leases l WHERE l.id = ANY(took) AND l.worker = who AND l.claim_n = num);
    END IF;
    RETURN QUERY SELECT 'run', NULL::text, NULL::text, l.* FROM lease_runs l
        WHERE l.id = ANY(took) ORDER BY l.priority DESC, l.due_at, l.seq;
    GET DIAGNOSTICS answered = ROW_COUNT;
    IF cardinality(known) > 0 OR free > 0 THEN
        RETURN QUERY WITH due AS MATERIALIZED (
            SELECT s.id, s.look_at FROM schedules s WHERE s.look_at <= now
            ORDER BY s.look_at LIMIT 1000 FOR UPDATE SKIP LOCKED
        ), offered AS (
            UPDATE schedules s SET look_at = after(now, 2) FROM due WHERE s.id = due.id
            RETURNING s.id::text, as_json(s) AS json, due.look_at
        )
        SELECT 'schedule', o.id, o.json, (NULL::runs).* FROM offered o ORDER BY o.look_at;
    END IF;
    IF answered < free THEN
        wake := wake_of(who, known, unpaused, again OR NOT fresh, now);
    ELSE
        wake := next_schedule(who, now);
    END IF;
    UPDATE workers w SET n = greatest(num, last), batch = CASE WHEN fresh THEN took ELSE w.batch END,
        tasks = known, seen_at = now, idle = CASE WHEN answered < free THEN 1 ELSE 0 END,
        wake_at = CASE WHEN answered < free THEN wake END,
        report = CASE WHEN fresh THEN coalesce(report_, w.report) ELSE w.report END
    WHERE w.name = who;
    RETURN QUERY WITH old AS MATERIALIZED (
        SELECT l.id FROM leases l WHERE l.until <= now AND (l.offer_at IS NULL OR l.offer_at <= now)
        ORDER BY l.until LIMIT 100 FOR UPDATE SKIP LOCKED
    ), offered AS (
        UPDATE leases l SET offer_at = after(now, 2) FROM old WHERE l.id = old.id RETURNING l.id
    )
    SELECT 'lapsed', NULL::text, NULL::text, l.* FROM lease_runs l WHERE l.id = ANY(ARRAY(SELECT o.id FROM offered o))
    ORDER BY l.until;
    IF fresh AND t_tasks <> '{}' THEN PERFORM chart(now, t_tasks, t_counts, t_waits, t_durations); END IF;
    hinted := hint(tasks, dues, now);
    PERFORM tell(me, hinted, touched);
    RETURN QUERY SELECT 'header', NULL::text, json_build_object('now', now,
        'wake', CASE WHEN wake IS NOT NULL THEN greatest(wake - now, 0) END, 'left', passed_over, 'hinted', coalesce(hinted, '{}'), 'touched', coalesce(touched, '{}'))::text, (NULL::runs).*;
END $$;

-- Schedules that the claim of that time was offered and could not read: not to be met at every claim. Not those that
-- someone has said something of since.
CREATE FUNCTION set_aside(me text, skew float8, seen float8, ids text[], claimed_at float8, seconds float8)
RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
    UPDATE schedules SET look_at = after(claimed_at, seconds) WHERE id = ANY(ARRAY(
        SELECT s.id FROM schedules s WHERE s.id = ANY(ids) AND s.look_at = after(claimed_at, 2) ORDER BY s.id FOR UPDATE))
$$;
