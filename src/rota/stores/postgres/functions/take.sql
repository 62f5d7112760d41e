-- twin: rota/stores/ledger/claim.py
-- Take runs for a claim: the best due runs that may start now.

-- The lanes of these tasks in these queues (without `queues`, in all), each with its floor and with the place of its first run;
-- NULL: it has none. A few look-ups per lane, however many runs the lane has, and however many it had. The next lane is one
-- that has a floor, or one that has runs: the look for a lane without a floor is between the lanes that have floors, and does not
-- walk over their dead rows. The other queues of a task are in task_queues: a look for them in the due index would walk over
-- dead rows.
CREATE OR REPLACE FUNCTION lanes(tasks text[], queues text[])
RETURNS TABLE (task text, queue text, priority smallint, floor float8, head float8)
LANGUAGE sql STABLE ROWS 10 AS $$
    WITH RECURSIVE lane (task, queue, priority) AS (
        SELECT s.task, s.queue, 32768 FROM (
            SELECT known, kept FROM unnest(tasks) AS known CROSS JOIN unnest(CASE WHEN queues = '{}' THEN '{""}' ELSE queues END) AS kept
            UNION SELECT t.task::text, t.queue::text FROM task_queues t WHERE queues = '{}' AND t.task = ANY(tasks)) AS s (task, queue)
        UNION ALL
        SELECT lane.task, lane.queue, coalesce((
            SELECT q.priority FROM queue q
            WHERE q.hold = 0 AND q.task = lane.task AND q.queue = lane.queue AND q.priority < lane.priority
              AND q.priority > coalesce(known.priority, -32769) ORDER BY q.priority DESC LIMIT 1), known.priority)::integer
        FROM lane CROSS JOIN LATERAL (
            SELECT (SELECT f.priority::integer FROM floors f
                    WHERE f.kind = 0 AND f.task = lane.task AND f.queue = lane.queue AND f.priority < lane.priority
                    ORDER BY f.priority DESC, f.version DESC LIMIT 1)) AS known (priority)
        WHERE lane.priority IS NOT NULL
    )
    SELECT l.task, l.queue, l.priority, l.floor,
           (SELECT q.lane_at FROM queue q WHERE q.hold = 0 AND q.task = l.task AND q.queue = l.queue AND q.priority = l.priority
              AND q.lane_at >= l.floor ORDER BY q.lane_at LIMIT 1)
    FROM (SELECT lane.task, lane.queue, lane.priority::smallint AS priority, coalesce((
              SELECT f.floor FROM floors f
              WHERE f.kind = 0 AND f.task = lane.task AND f.queue = lane.queue AND f.priority = lane.priority
              ORDER BY f.version DESC LIMIT 1), '-Infinity') AS floor
          FROM lane WHERE lane.priority < 32768 OFFSET 0) AS l
$$;

-- Take at most `most` of the best due runs of these lanes, as far as the gates of their tasks allow. Each run that is looked at
-- is taken (moved into leases), parked because its key is saturated, or left because no run of its task may start now; then its
-- task is in `shut`. The room of a key is the number of its runs that may start: in one claim the first runs of a key pass, up
-- to its room, and the others are parked. A run behind the last seat says nothing of its task: the runs before it may not be
-- taken, because a named limit has no room.
-- `look`: how many runs are looked at. `suspects`: take a run only if the first run that may start has losses, and only that
-- run. `skipped`: another verb has locked some of the runs.
-- Lock order: the caller has locked the gates, so the numbers that they count do not change. Runs are locked SKIP LOCKED.
CREATE OR REPLACE FUNCTION take(
    who text, num bigint, l_tasks text[], l_queues text[], l_priorities smallint[], l_heads float8[], l_floors float8[], gates text[], most integer,
    look integer, suspects boolean, seconds float8, now float8,
    OUT taken text[], OUT parked text[], OUT shut text[], OUT losses_of_first integer, OUT skipped boolean
) LANGUAGE plpgsql AS $$
DECLARE
    best text[];
    fit record;
    shared text[] := '{}';
    most_locked integer := CASE WHEN gates = '{}' THEN most ELSE look END;
    named boolean := EXISTS (SELECT FROM unnest(gates) AS g WHERE strpos(g, ' ') > 0);  -- there are rows of named limits
BEGIN
    IF gates <> '{}' THEN
        shared := ARRAY(SELECT s.name FROM specs s WHERE s.name = ANY(gates) AND s.weights IS NOT NULL);
    END IF;
    best := ARRAY(
        SELECT q.id FROM unnest(l_tasks, l_queues, l_priorities, l_floors) AS lane (task, queue, priority, floor) CROSS JOIN LATERAL (
            SELECT q.id, q.priority, q.due_at, q.seq FROM queue q
            WHERE q.hold = 0 AND q.task = lane.task AND q.queue = lane.queue AND q.priority = lane.priority
              AND q.lane_at BETWEEN lane.floor AND now
              AND (q.expires_at IS NULL OR q.expires_at > now) AND (suspects OR q.losses = 0)
            ORDER BY q.lane_at, q.due_at, q.seq LIMIT look) AS q
        ORDER BY q.priority DESC, q.due_at, q.seq LIMIT look);
    IF shared <> '{}' THEN best := mixed(l_tasks, l_queues, l_priorities, l_floors, l_heads, shared, look, suspects, now); END IF;
    -- Lock as many runs as can be used, in their order, and skip the runs that other verbs have locked.
    -- Race: since the look above, a join may have moved a run to a later time or given it another expiry. So the conditions are
    -- checked again on the locked row.
    -- Query plan: no index serves these conditions, on purpose. A plan that is made while the queue is empty would walk the due
    -- index instead of looking up the ids, for as long as the connection lives.
    WITH ours AS MATERIALIZED (
        SELECT q.id, q.task, q.key, q.losses, q.priority, q.due_at, q.seq,
               CASE WHEN shared <> '{}' THEN array_position(best, q.id::text) END AS turn
        FROM queue q
        WHERE q.id = ANY(best) AND q.hold + 0 = 0 AND q.due_at + 0 <= now AND coalesce(q.expires_at > now, true)
          AND (suspects OR q.losses + 0 = 0)
        ORDER BY turn, q.priority DESC, q.due_at, q.seq LIMIT most_locked FOR UPDATE SKIP LOCKED
    ), ranked AS (
        SELECT o.*, row_number() OVER (ORDER BY o.turn, o.priority DESC, o.due_at, o.seq) AS rank,
               row_number() OVER (PARTITION BY o.task, o.key ORDER BY o.turn, o.priority DESC, o.due_at, o.seq) AS key_place,
               row_number() OVER (PARTITION BY o.task ORDER BY o.turn, o.priority DESC, o.due_at, o.seq) AS task_rank
        FROM ours o
    ), roomed AS (  -- one look-up per key and per task: for the first run of each
        SELECT d.*, CASE WHEN d.key_place = 1 AND d.key IS NOT NULL AND d.task = ANY(gates) THEN (
            SELECT least(
                g.per_key - coalesce((SELECT r.n FROM running r WHERE r.task = d.task AND r.key = '=' || d.key ORDER BY r.version DESC LIMIT 1), 0),
                CASE WHEN g.rate_per_key THEN tokens(full_at(d.task, d.key), g.rate_interval, g.rate_burst, now) END,
                CASE WHEN d.key = ANY(g.paused_keys) THEN 0 END)
            FROM specs g WHERE g.name = d.task) END AS key_room,
        CASE WHEN d.task_rank = 1 AND d.task = ANY(gates) THEN (
            SELECT least(
                g.total - coalesce((SELECT r.n FROM running r WHERE r.task = d.task AND r.key = '' ORDER BY r.version DESC LIMIT 1), 0),
                CASE WHEN NOT g.rate_per_key THEN tokens(full_at(d.task, ''), g.rate_interval, g.rate_burst, now) END)
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
           array_agg(DISTINCT p.task::text) FILTER (WHERE NOT p.starts AND NOT p.waits AND p.place < most),
           (array_agg(p.losses ORDER BY p.rank) FILTER (WHERE p.starts AND p.place <= most))[1],
           count(*) < least(cardinality(best), most_locked)
    INTO taken, parked, shut, losses_of_first, skipped FROM placed p;
    IF losses_of_first > 0 THEN taken := taken[1:1]; END IF;
    IF named AND taken IS NOT NULL THEN
        SELECT * INTO fit FROM fit_limits(taken, gates);
        taken := nullif(fit.kept, '{}');
        shut := nullif(coalesce(shut, '{}') || fit.full_tasks, '{}');
        IF taken IS NULL AND suspects THEN
            parked := NULL;
            RETURN;
        END IF;
    END IF;
    IF suspects AND coalesce(losses_of_first, 0) = 0 THEN
        taken := NULL; parked := NULL;  -- the first run that may start is no suspect
        RETURN;
    END IF;
    UPDATE queue SET hold = 1 WHERE id = ANY(parked);
    PERFORM lease(who, num, taken, gates, seconds, now);
    IF shared <> '{}' THEN PERFORM keep_turns(taken); END IF;
    IF gates <> '{}' THEN
        PERFORM count_running(ARRAY(SELECT l.task::text FROM leases l WHERE l.id = ANY(taken) AND l.gated ORDER BY l.id),
                              ARRAY(SELECT l.key::text FROM leases l WHERE l.id = ANY(taken) AND l.gated ORDER BY l.id), 1, now);
        IF named THEN
            PERFORM count_running(ARRAY(SELECT n FROM leases l CROSS JOIN unnest(l.limits) AS n WHERE l.id = ANY(taken)), '{}', 1, now);
        END IF;
        PERFORM keep_rates(taken, parked, gates, now);
    END IF;
END $$;

-- Move the queued runs `ids`, which the caller has locked, into leases of the worker `who`.
CREATE OR REPLACE FUNCTION lease(who text, num bigint, ids text[], gates text[], seconds float8, now float8) RETURNS void
LANGUAGE sql AS $$
    WITH gone AS (DELETE FROM queue WHERE id = ANY(ids) RETURNING *)
    INSERT INTO leases ({carried}, {waited}, note, fence, claim_n, claimed_at, until, gated, worker, limits)
    SELECT {g.carried}, {g.waited}, g.note, g.fence + 1, num, now, after(now, seconds), g.task = ANY(gates), who,
           CASE WHEN g.task = ANY(gates) THEN (SELECT nullif(s.limits, '{}') FROM specs s WHERE s.name = g.task) END FROM gone g
$$;

-- Take runs for all free seats, in rounds: after a round that parked runs or found tasks shut, the next round looks at the
-- runs behind them.
-- `again`: the claim ended early, at {PARKED_AT_ONCE} parked runs or with a suspect, and there may be more to take.
-- `passed_over`: a suspect is due and was not taken, because a suspect runs alone in its worker.
-- `skipped`: seats are left empty although runs are due, because other verbs have locked these runs.
-- `all_tasks`, `all_queues`, `all_priorities`: all lanes of the tasks `known`. Of these tasks, `startable` may be taken.
CREATE OR REPLACE FUNCTION take_all(
    who text, num bigint, known text[], startable text[], queues text[], gates text[], free integer, seconds float8, now float8,
    OUT batch text[], OUT places tid[], OUT passed_over boolean, OUT again boolean, OUT skipped boolean,
    OUT all_tasks text[], OUT all_queues text[], OUT all_priorities smallint[]
) LANGUAGE plpgsql AS $$
DECLARE
    l_tasks text[];
    l_queues text[];
    l_priorities smallint[];
    l_floors float8[];
    l_heads float8[];
    alone boolean;
    suspects boolean;
    got record;
    look integer;
    wider integer := 0;
    parked integer := 0;
    locked boolean := false;
BEGIN
    batch := '{}'; passed_over := false; again := false; skipped := false;
    SELECT array_agg(l.task), array_agg(l.queue), array_agg(l.priority),
           array_agg(l.task) FILTER (WHERE l.open), array_agg(l.queue) FILTER (WHERE l.open),
           array_agg(l.priority) FILTER (WHERE l.open), array_agg(l.floor) FILTER (WHERE l.open),
           array_agg(l.head) FILTER (WHERE l.open)
    INTO all_tasks, all_queues, all_priorities, l_tasks, l_queues, l_priorities, l_floors, l_heads
    FROM (SELECT l.*, l.head <= now AND l.task = ANY(startable)
                 AND (l.task <> ALL(gates) OR has_room(l.task, now)) AS open  -- runs of a task that is shut are not even read
          FROM lanes(known, queues) l OFFSET 0) AS l;
    IF l_tasks IS NULL THEN RETURN; END IF;
    SELECT NOT EXISTS (SELECT FROM leases l WHERE l.worker = who AND l.losses > 0),
           EXISTS (SELECT FROM queue q WHERE q.losses > 0 AND q.hold = 0 AND q.task = ANY(l_tasks)
                   AND (queues = '{}' OR q.queue = ANY(queues)) AND q.due_at <= now)
    INTO alone, suspects;
    IF cardinality(l_tasks) = 1 AND l_tasks[1] <> ALL(gates) AND NOT suspects THEN
        got := take_lane(who, num, l_tasks[1], l_queues[1], l_priorities[1], l_heads[1], free, seconds, now);
        batch := coalesce(got.batch, '{}'); places := got.places;
        passed_over := NOT alone;
        skipped := cardinality(batch) < free AND EXISTS (
            SELECT FROM queue q WHERE q.hold = 0 AND q.task = l_tasks[1] AND q.queue = l_queues[1] AND q.priority = l_priorities[1]
              AND q.lane_at BETWEEN l_floors[1] AND now AND (q.expires_at IS NULL OR q.expires_at > now));
        RETURN;
    END IF;
    IF suspects AND alone THEN
        SELECT * INTO got FROM take(who, num, l_tasks, l_queues, l_priorities, l_heads, l_floors, gates, 1, 200, true, seconds, now);
        IF got.taken IS NOT NULL THEN
            batch := got.taken; passed_over := true; again := true;
            RETURN;
        END IF;
        locked := got.skipped;
    END IF;
    WHILE cardinality(batch) < free AND parked < {PARKED_AT_ONCE} LOOP
        look := CASE WHEN parked = 0 THEN free - cardinality(batch) ELSE free + 200 END + wider * (free + 100);
        IF gates <> '{}' THEN look := least(look, {PARKED_AT_ONCE} - parked); END IF;
        SELECT * INTO got FROM take(who, num, l_tasks, l_queues, l_priorities, l_heads, l_floors, gates, free - cardinality(batch), look,
                                    false, seconds, now);
        EXIT WHEN got.taken IS NULL AND got.parked IS NULL AND got.shut IS NULL AND (NOT got.skipped OR wider > 5);
        wider := wider + got.skipped::integer;  -- other claims are taking the first runs: look at more runs
        batch := batch || got.taken;
        parked := parked + coalesce(cardinality(got.parked), 0);
        IF got.shut IS NOT NULL THEN
            SELECT array_agg(l.task), array_agg(l.queue), array_agg(l.priority), array_agg(l.floor), array_agg(l.head)
            INTO l_tasks, l_queues, l_priorities, l_floors, l_heads
            FROM unnest(l_tasks, l_queues, l_priorities, l_floors, l_heads) AS l (task, queue, priority, floor, head) WHERE l.task <> ALL(got.shut);
            EXIT WHEN l_tasks IS NULL;
        END IF;
    END LOOP;
    again := parked >= {PARKED_AT_ONCE};
    skipped := cardinality(batch) < free AND (locked OR got.skipped);
    passed_over := NOT alone OR (suspects AND (cardinality(batch) < free OR EXISTS (
        SELECT FROM queue q, leases l
        WHERE q.losses > 0 AND q.hold = 0 AND q.task = ANY(l_tasks) AND (queues = '{}' OR q.queue = ANY(queues))
          AND q.due_at <= now AND l.id = batch[cardinality(batch)]
          AND (-q.priority, q.due_at, q.seq) < (-l.priority, l.due_at, l.seq))));
END $$;

-- Take runs in the common case, by one statement: one lane, no gate, no suspect. `head`: where the first run of the lane was found
-- just now; a run that has come in below it since then is left for the next claim. Runs that another verb has locked are
-- skipped (SKIP LOCKED).
CREATE OR REPLACE FUNCTION take_lane(
    who text, num bigint, which text, in_queue text, level smallint, head float8, free integer, seconds float8, now float8,
    OUT batch text[], OUT places tid[]
) LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM queue WHERE ctid = ANY(ARRAY(
            SELECT q.ctid FROM queue q
            WHERE q.hold = 0 AND q.task = which AND q.queue = in_queue AND q.priority = level
              AND q.lane_at BETWEEN head AND now
              AND (q.expires_at IS NULL OR q.expires_at > now)
            ORDER BY q.lane_at, q.due_at, q.seq LIMIT free FOR UPDATE SKIP LOCKED)) RETURNING *
    ), kept AS (
        INSERT INTO leases ({carried}, {waited}, note, fence, claim_n, claimed_at, until, worker)
        SELECT {g.carried}, {g.waited}, g.note, g.fence + 1, num, now, after(now, seconds), who FROM gone g
        RETURNING leases.id::text, leases.ctid
    )
    SELECT array_agg(k.id), array_agg(k.ctid) INTO batch, places FROM kept k;
END $$;
