-- twin: rota/stores/idle.py rota/stores/ledger/holds.py
-- Hints: which idle workers are woken, and how other processes hear of it.

-- Arrivals have the name of a lane: the task, and behind chr(31) the queue, unless it is the default queue. The queue is "*" if
-- a run of any queue may start, because a limit of the task has room again.
CREATE OR REPLACE FUNCTION lane_name(task text, queue text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN queue = '' THEN task ELSE task || E'\x1f' || queue END
$$;

CREATE OR REPLACE FUNCTION any_lane(task text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT task || E'\x1f*' $$;

-- The name of a queue as the tables have it: nothing for the default queue.
CREATE OR REPLACE FUNCTION kept_queue(queue text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN queue = 'default' THEN '' ELSE queue END
$$;

-- May a worker with these tasks and queues take runs of the lane `name`?
CREATE OR REPLACE FUNCTION serves(tasks text[], queues text[], name text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT split_part(name, E'\x1f', 1) = ANY(tasks)
       AND (queues = '{}' OR split_part(name, E'\x1f', 2) = '*'
            OR CASE split_part(name, E'\x1f', 2) WHEN '' THEN 'default' ELSE split_part(name, E'\x1f', 2) END = ANY(queues))
$$;

-- Mark a worker as hinted; false if another verb has locked or changed its state: it claims right now, or was just hinted.
CREATE OR REPLACE FUNCTION mark_hinted(who text, known bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE worker_states SET idle = 2, version = version + 1 WHERE ctid = (
        SELECT s.ctid FROM worker_states s WHERE s.name = who AND s.version = known FOR NO KEY UPDATE SKIP LOCKED);
    RETURN FOUND;
END $$;

-- Hint one idle worker that serves the lane `which` (NULL: any) and does not wake by itself until `due`: the one that wakes last.
-- `of_queues`: only a worker with just these queues. Returns its name; NULL if there is none.
CREATE OR REPLACE FUNCTION hint_one(which text, due float8, now float8, of_queues text[] DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    candidate record;
BEGIN
    FOR candidate IN
        SELECT w.name, w.version FROM workers_seen w
        WHERE w.idle = 1 AND w.seen_at > now - {IDLE_MEMORY} AND (which IS NULL OR serves(w.tasks, w.queues, which))
          AND (of_queues IS NULL OR w.queues = of_queues) AND coalesce(w.wake_at, 'Infinity') > due
        ORDER BY coalesce(w.wake_at, 'Infinity') DESC, w.name
    LOOP
        IF mark_hinted(candidate.name, candidate.version) THEN RETURN candidate.name; END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- The run `newcomer` as a message to the worker it may be handed to; NULL if a claim has to weigh it: it is not due, or larger
-- than a message may be, its task has a limit, a rate, a pause or an override, or another run of its lane is due.
CREATE OR REPLACE FUNCTION handed_message(newcomer text, now float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    run queue;
    message json;
BEGIN
    SELECT * INTO run FROM queue q WHERE q.id = newcomer;
    IF run.hold <> 0 OR run.due_at > now OR run.expires_at <= now OR octet_length(run.body) > {HANDED_BYTES} / 2
        OR EXISTS (SELECT FROM specs s WHERE s.name = run.task AND (s.gated OR s.paused OR NOT s.enabled))
        OR EXISTS (SELECT FROM specs s WHERE s.name = 'override ' || run.task)
        OR EXISTS (SELECT FROM freezes z WHERE z.until IS NULL OR z.until > now)
        OR EXISTS (SELECT FROM queue q
                   WHERE q.hold = 0 AND q.task = run.task AND q.queue = run.queue AND q.priority = run.priority AND q.id <> newcomer
                     AND q.lane_at BETWEEN floor_of(0::smallint, run.task, run.priority, run.queue) AND now)
    THEN RETURN NULL; END IF;
    run.touches := coalesce(run.touches, 1);  -- these three as in the view queue_runs
    run.touched_at := coalesce(run.touched_at, run.created_at);
    run.queue := CASE run.queue WHEN '' THEN 'default' ELSE run.queue END;
    message := json_strip_nulls(row_to_json(run));
    RETURN CASE WHEN octet_length(message::text) <= {HANDED_BYTES} THEN message END;
END $$;

-- Lease the run `newcomer` to the worker `who`, as a part of its last claim, and send it to the connection that listens for that
-- worker. The message can get lost: so the lease is short, and the next claim of the worker says which run it took; if it took
-- none, that claim returns the run. With a second free seat (`spare`), the worker is hinted for more runs meanwhile.
-- Return false if another verb has locked or changed the state of the worker.
CREATE OR REPLACE FUNCTION hand_over(who text, known bigint, newcomer text, message json, now float8) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    worker worker_states;
    lasts float8;
BEGIN
    SELECT s.* INTO worker FROM worker_states s WHERE s.name = who AND s.version = known FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN false; END IF;
    lasts := least(worker.lasts, {UNHEARD});
    UPDATE worker_states s SET idle = CASE WHEN worker.spare THEN 1 ELSE 0 END, version = s.version + 1, token = NULL,
           handed = newcomer, batch = ARRAY[newcomer] WHERE s.name = who AND s.version = known;
    WITH gone AS (DELETE FROM queue q WHERE q.id = newcomer RETURNING *)
    INSERT INTO leases ({carried}, {waited}, note, fence, claim_n, claimed_at, until, worker)
    SELECT {g.carried}, {g.waited}, g.note, g.fence + 1, worker.n, now, after(now, lasts), who FROM gone g;
    PERFORM pg_notify('rota.ear.' || worker.ear, json_build_object('worker', who, 'token', worker.token, 'run', message,
        'lease', json_build_object('state', 'running', 'fence', (message ->> 'fence')::integer + 1, 'worker', who,
                                   'claimed_at', now, 'until', after(now, lasts), 'parked', false,
                                   'cancel_requested', false, 'pause_requested', false))::text);
    RETURN true;
END $$;

-- A worker for the lone new run `newcomer` of the lane `which`: the first that is ready is handed the run; else one is hinted.
-- Returns the names of those that were hinted; `handed`: the run is leased.
CREATE OR REPLACE FUNCTION hand_or_hint(newcomer text, which text, now float8, OUT hinted text[], OUT handed boolean) LANGUAGE plpgsql AS $$
DECLARE
    candidate record;
    message json;
    weighed boolean := false;
BEGIN
    hinted := '{}'; handed := false;
    FOR candidate IN
        SELECT w.name, s.version, s.ear FROM workers w CROSS JOIN LATERAL (
            SELECT s.version, s.seen_at, s.wake_at, s.idle, CASE WHEN s.token IS NOT NULL THEN s.ear END AS ear FROM worker_states s
            WHERE s.name = w.name ORDER BY s.version DESC LIMIT 1) AS s
        WHERE s.idle = 1 AND s.seen_at > now - {IDLE_MEMORY} AND serves(w.tasks, w.queues, which) AND coalesce(s.wake_at, 'Infinity') > now
        ORDER BY s.ear IS NULL, coalesce(s.wake_at, 'Infinity') DESC, w.name
    LOOP
        -- The connection that listens holds this lock, unless it is gone.
        IF candidate.ear IS NOT NULL AND NOT pg_try_advisory_xact_lock_shared(lock_class('ears'), candidate.ear) THEN
            IF NOT weighed THEN message := handed_message(newcomer, now); END IF;
            weighed := true;
            IF message IS NOT NULL THEN
                handed := hand_over(candidate.name, candidate.version, newcomer, message, now);
                IF handed THEN RETURN; END IF;
                CONTINUE;
            END IF;
        END IF;
        IF mark_hinted(candidate.name, candidate.version) THEN
            hinted := ARRAY[candidate.name];
            RETURN;
        END IF;
    END LOOP;
END $$;

-- Choose an idle worker for each arrival (`tasks`: names of lanes, `dues`) and return the names of the chosen workers; `idle` = 2
-- marks them. For an arrival in any queue, one of the workers that serve the same queues is chosen.
-- A worker that wakes by itself before the arrival is due is not chosen. Of the others, the worker that would wake last is
-- chosen first. A task of NULL is a schedule: any worker can fire it, and no worker is chosen if one wakes in time.
-- Race: a worker whose row is locked is claiming right now. It is skipped (SKIP LOCKED), and its claim may not see what this
-- verb adds: see `missed`.
CREATE OR REPLACE FUNCTION to_hint(tasks text[], dues float8[], now float8) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    idle_now bigint;
    bound boolean;  -- a worker serves only some queues
    hinted text[] := '{}';
    served text[];
    found_one text;
    arrival record;
    first_tick float8;
BEGIN
    IF cardinality(tasks) IS NULL OR cardinality(tasks) = 0 THEN RETURN hinted; END IF;
    IF cardinality(tasks) = 1 AND right(tasks[1], 2) <> E'\x1f*' THEN  -- a lone run in one queue
        found_one := hint_one(tasks[1], dues[1], now);
        RETURN CASE WHEN found_one IS NULL THEN hinted ELSE ARRAY[found_one] END;
    END IF;
    SELECT count(*) INTO idle_now FROM workers_seen w WHERE w.idle = 1 AND w.seen_at > now - {IDLE_MEMORY};
    IF idle_now = 0 THEN RETURN hinted; END IF;
    bound := EXISTS (SELECT FROM workers w WHERE w.queues <> '{}');
    FOR arrival IN
        SELECT * FROM (SELECT a.task, a.due_at, row_number() OVER (PARTITION BY a.task ORDER BY a.due_at) AS place
                       FROM unnest(tasks, dues) AS a (task, due_at)) AS ranked
        WHERE ranked.task IS NOT NULL AND ranked.place <= idle_now ORDER BY ranked.due_at
    LOOP
        IF bound AND right(arrival.task, 2) = E'\x1f*' THEN
            FOR served IN SELECT DISTINCT w.queues FROM workers_seen w WHERE w.idle = 1 AND serves(w.tasks, w.queues, arrival.task) LOOP
                found_one := hint_one(arrival.task, arrival.due_at, now, served);
                IF found_one IS NOT NULL THEN hinted := hinted || found_one; END IF;
            END LOOP;
        ELSE
            found_one := hint_one(arrival.task, arrival.due_at, now);
            IF found_one IS NOT NULL THEN hinted := hinted || found_one; END IF;
        END IF;
        EXIT WHEN cardinality(hinted) >= idle_now;
    END LOOP;
    SELECT min(a.due_at) INTO first_tick FROM unnest(tasks, dues) AS a (task, due_at) WHERE a.task IS NULL;
    IF first_tick IS NOT NULL AND cardinality(hinted) = 0 AND NOT EXISTS (
        SELECT FROM workers_seen w WHERE w.idle = 1 AND w.seen_at > now - {IDLE_MEMORY} AND w.wake_at <= first_tick
    ) THEN
        found_one := hint_one(NULL, '-Infinity', now);
        IF found_one IS NOT NULL THEN hinted := hinted || found_one; END IF;
    END IF;
    RETURN hinted;
END $$;

-- Send hints to the other processes that listen. The server sends a NOTIFY when the transaction commits. The client of the
-- caller gives the hints to the workers of its own process (`PostgresStore._publish`).
-- `unheard`: names of lanes that have a due run for which `to_hint` found no idle worker. Each process that listens wakes one of its own
-- workers for them, if it has an idle one by then.
CREATE OR REPLACE FUNCTION send_hints(me text, hinted text[], touched text[], unheard text[] DEFAULT '{}') RETURNS void
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
    -- A payload has at most 8,000 bytes. So each message names ten workers, and no message names runs: after `resync`, whoever
    -- waits for a run reads that run.
    PERFORM pg_notify(channel, json_build_object('from', me, 'resync', true)::text);
    FOR i IN 0 .. (coalesce(cardinality(hinted), 0) - 1) / 10 LOOP
        PERFORM pg_notify(channel, json_build_object('from', me, 'workers', hinted[i * 10 + 1 : i * 10 + 10])::text);
    END LOOP;
END $$;

-- The arrivals for `to_hint` after the limits or the pause of a task have changed: `now` for each waiting run of the task, at
-- most {ANNOUNCED_AT_ONCE} times.
CREATE OR REPLACE FUNCTION announce(which text, now float8) RETURNS float8[] LANGUAGE sql AS $$
    SELECT ARRAY(SELECT now FROM queue q WHERE q.hold < 2 AND q.task = which LIMIT {ANNOUNCED_AT_ONCE})
$$;

-- Which of the idle workers `names` have a due run to claim? They are marked as hinted (`idle` = 2).
-- Race: a put and a claim that run at the same time do not see each other. The put sees no idle worker, and the claim sees no
-- run. So a client calls this function a moment after a claim of its worker has left seats empty. Every worker that was
-- hinted and has not claimed since is expected to take one run (`coming`).
CREATE OR REPLACE FUNCTION missed(me text, skew float8, seen float8, names text[]) RETURNS text[]
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    now float8 := now_of(skew, seen, false);
    known text[] := ARRAY(
        SELECT DISTINCT t FROM workers_seen w CROSS JOIN unnest(w.tasks) AS t WHERE w.name = ANY(names) AND w.idle = 1
          AND w.seen_at > now - {IDLE_MEMORY}
          AND NOT EXISTS (SELECT FROM specs s WHERE s.name = t AND (NOT s.enabled OR s.paused AND is_paused(t, now))));
    fresh text[] := ARRAY(
        SELECT lane_name(l.task, l.queue) FROM lanes(known, '{}') l CROSS JOIN LATERAL (
            SELECT count(*) AS n FROM workers_seen w WHERE w.idle = 2 AND w.seen_at > now - {IDLE_MEMORY}
              AND serves(w.tasks, w.queues, lane_name(l.task, l.queue))
        ) AS coming CROSS JOIN LATERAL (
            SELECT count(*) AS n FROM (
                SELECT FROM queue q WHERE q.hold = 0 AND q.task = l.task AND q.queue = l.queue AND q.priority = l.priority
                  AND q.lane_at BETWEEN l.floor AND now
                LIMIT coming.n + 1) AS q
        ) AS due
        WHERE l.head <= now AND has_room(l.task, now) GROUP BY l.task, l.queue, coming.n HAVING sum(due.n) > coming.n);
    hinted text[] := '{}';
BEGIN
    IF fresh <> '{}' THEN
        hinted := ARRAY(SELECT w.name FROM workers_seen w WHERE w.name = ANY(names) AND w.idle = 1
            AND w.seen_at > now - {IDLE_MEMORY} AND EXISTS (SELECT FROM unnest(fresh) AS f WHERE serves(w.tasks, w.queues, f))
            AND mark_hinted(w.name, w.version));
    END IF;
    RETURN hinted;
END $$;

-- The number of this connection, for workers that it listens for: runs are handed over on the channel of that number, as long
-- as this connection lives.
CREATE OR REPLACE FUNCTION open_ear() RETURNS integer LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_advisory_lock(lock_class('ears'), pg_backend_pid());
    RETURN pg_backend_pid();
END $$;

-- Register the process `me` as a listener for the next `seconds`.
CREATE OR REPLACE FUNCTION listen_for(me text, seconds float8) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
    INSERT INTO listeners VALUES (me, clock_timestamp() + seconds * interval '1 second')
    ON CONFLICT (id) DO UPDATE SET until = excluded.until
$$;
