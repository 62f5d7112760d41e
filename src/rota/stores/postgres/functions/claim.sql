-- twin: rota/stores/ledger/claim.py
-- claim: runs for one worker, and due schedules and lapsed leases, which any worker may handle.

-- A schedule as JSON: what was declared, its state, its last firings. `read_schedule` in rows.py reads it.
CREATE OR REPLACE FUNCTION as_json(s schedules) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT '[' || s.declared || ',' || json_build_array(s.anchor, s.next_at, s.fires_at, s.version, s.since, s.paused,
        s.note, s.made)::text || ',[' || array_to_string(s.recent, ',') || ']]'
$$;

-- When the worker `who` should claim again: at the first coming time (of a run, a schedule or a rate) for which too few other
-- idle workers wake. The worker does not simply take the coming time number (other workers + 1): then all workers that claim
-- again would move to the last one.
-- `l_*`: the lanes of the startable tasks. `gated`: there are tasks with limits or rates.
-- `skipped`: other verbs have locked due runs. These are expected soon; but the transaction of a caller may lock a run for
-- long, so the worker waits half as long as the run has been due, from 0.02 to 1 second.
CREATE OR REPLACE FUNCTION wake_at(
    who text, known text[], served text[], startable text[], queues text[], l_tasks text[], l_queues text[], l_priorities smallint[],
    again boolean, skipped boolean, gated boolean, schedule_floor float8, now float8
) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
    others float8[];
    due text[];
    times float8[];
    place integer := 0;
    coming float8;
BEGIN
    IF again OR skipped OR gated THEN
        SELECT array_agg(l.task), array_agg(l.queue), array_agg(l.priority), array_agg(l.task) FILTER (WHERE l.head <= now),
               CASE WHEN skipped THEN ARRAY[now + least(1, greatest(0.02, (now - max(l.head) FILTER (WHERE l.head <= now)) / 2))] END
        INTO l_tasks, l_queues, l_priorities, due, times FROM lanes(startable, queues) l;
        IF again AND due IS NOT NULL THEN
            RETURN now;  -- this claim ended early or was sent again: the next claim takes the due runs
        END IF;
        times := times || least(
            (SELECT min(r.opens_at) FROM rates r
             WHERE r.opens_at >= floor_of(5::smallint, '', 0::smallint) AND r.task = ANY(startable)),
            (SELECT min(f.full_at - (s.rate_burst - 1) * s.rate_interval)
             FROM specs s CROSS JOIN LATERAL full_at(s.name, '') AS f (full_at)
             WHERE s.name = ANY(due) AND NOT s.rate_per_key
             AND f.full_at - (s.rate_burst - 1) * s.rate_interval > now));
    END IF;
    IF cardinality(startable) < cardinality(known) THEN  -- a freeze of the store, or the first pause of a task, may end by itself
        times := times || (SELECT min(p.until) FROM (
            SELECT z.until, known AS tasks FROM freezes z WHERE z.until > now
            UNION ALL SELECT p.until, ARRAY[p.task::text] FROM pauses p
            WHERE p.task = ANY(known) AND p.until > now AND NOT EXISTS (SELECT FROM freezes z WHERE z.until IS NULL OR z.until > now)
              AND EXISTS (SELECT FROM specs s WHERE s.name = p.task AND s.paused)) AS p
            WHERE EXISTS (SELECT FROM lanes(p.tasks, queues) l WHERE l.head IS NOT NULL));  -- runs wait for that
    END IF;
    times := times || (SELECT min(s.look_at) FROM schedules s WHERE s.look_at >= schedule_floor AND s.look_at IS NOT NULL);
    coming := least((SELECT min(q.lane_at) FROM unnest(l_tasks, l_queues, l_priorities) AS l (task, queue, priority) CROSS JOIN LATERAL (
        SELECT q.lane_at FROM queue q
        WHERE q.hold = 0 AND q.task = l.task AND q.queue = l.queue AND q.priority = l.priority AND q.lane_at > now
        ORDER BY q.lane_at LIMIT 1) AS q), (SELECT min(t) FROM unnest(times) AS t));
    IF coming IS NULL THEN RETURN NULL; END IF;
    others := ARRAY(SELECT w.wake_at FROM workers_seen w WHERE w.idle = 1 AND w.name <> who AND w.seen_at > now - {IDLE_MEMORY}
                    AND w.wake_at > now AND w.tasks && known
                    AND (w.queues = '{}' OR served = '{}' OR w.queues && served));
    IF others = '{}' THEN RETURN coming; END IF;
    FOR coming IN
        SELECT c.at FROM (
            (SELECT q.lane_at AS at FROM unnest(l_tasks, l_queues, l_priorities) AS l (task, queue, priority) CROSS JOIN LATERAL (
                SELECT q.lane_at FROM queue q
                WHERE q.hold = 0 AND q.task = l.task AND q.queue = l.queue AND q.priority = l.priority AND q.lane_at > now
                ORDER BY q.lane_at LIMIT cardinality(others) + 1) AS q
             ORDER BY q.lane_at LIMIT cardinality(others) + 1)
            UNION ALL
            SELECT t FROM unnest(times) AS t
        ) AS c WHERE c.at IS NOT NULL ORDER BY c.at
    LOOP
        IF (SELECT count(*) FROM unnest(others) AS o WHERE o <= coming) <= place THEN RETURN coming; END IF;
        place := place + 1;
    END LOOP;
    RETURN NULL;
END $$;

-- When a worker without free seats should look at the schedules; NULL if an idle worker wakes for them in time.
CREATE OR REPLACE FUNCTION next_schedule(who text, schedule_floor float8, now float8) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    fires float8 := (SELECT min(s.look_at) FROM schedules s WHERE s.look_at >= schedule_floor AND s.look_at IS NOT NULL);
BEGIN
    IF fires IS NULL THEN RETURN NULL; END IF;
    IF EXISTS (SELECT FROM workers_seen w WHERE w.idle = 1 AND w.name <> who AND w.seen_at > now - {IDLE_MEMORY}
               AND w.wake_at <= greatest(fires, now)) THEN
        RETURN NULL;
    END IF;
    RETURN fires;
END $$;

-- What a claim has to do beside taking runs, by one statement: most claims find nothing. `startable`: those of the tasks `known`
-- of which runs may start. `moved`: the worker is not known with these tasks and queues.
CREATE OR REPLACE FUNCTION look_around(
    who text, known text[], shown text[], served text[], offers boolean, now float8,
    OUT expiry_floor float8, OUT lease_floor float8, OUT schedule_floor float8, OUT rate_floor float8, OUT raised_at float8,
    OUT startable text[], OUT gated boolean, OUT moved boolean, OUT expired boolean, OUT opened boolean, OUT ticking boolean,
    OUT lapsed boolean, OUT recorded boolean, OUT overridden boolean
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT f.*,
        CASE WHEN EXISTS (SELECT FROM freezes z WHERE z.until IS NULL OR z.until > now) THEN '{}'
             ELSE ARRAY(SELECT t FROM unnest(known) AS t
                        WHERE NOT EXISTS (SELECT FROM specs s WHERE s.name = t AND (NOT s.enabled OR s.paused AND is_paused(t, now)))) END,
        EXISTS (SELECT FROM specs s WHERE s.gated),
        EXISTS (SELECT FROM workers w WHERE w.name = who AND (w.tasks <> shown OR w.queues <> served)),
        EXISTS (SELECT FROM queue q WHERE q.expires_at BETWEEN f.expiry_floor AND now AND q.hold <> 3),
        EXISTS (SELECT FROM rates r WHERE r.opens_at BETWEEN f.rate_floor AND now),
        offers AND EXISTS (SELECT FROM schedules s WHERE s.look_at BETWEEN f.schedule_floor AND now),
        offers AND EXISTS (SELECT FROM leases l WHERE l.until BETWEEN f.lease_floor AND now),
        (SELECT r.last_value FROM record_until r) > now * {PER_SECOND},
        EXISTS (SELECT FROM specs s WHERE s.name >= 'override ' AND s.name < 'override!')
    INTO expiry_floor, lease_floor, schedule_floor, rate_floor, raised_at,
         startable, gated, moved, expired, opened, ticking, lapsed, recorded, overridden
    FROM (SELECT coalesce(max(k.floor) FILTER (WHERE k.kind = 1), '-Infinity') AS expiry_floor,
                 coalesce(max(k.floor) FILTER (WHERE k.kind = 2), '-Infinity') AS lease_floor,
                 coalesce(max(k.floor) FILTER (WHERE k.kind = 3), '-Infinity') AS schedule_floor,
                 coalesce(max(k.floor) FILTER (WHERE k.kind = 5), '-Infinity') AS rate_floor,
                 max(k.raised_at) FILTER (WHERE k.kind = 2) AS raised_at
          FROM (VALUES (1::smallint), (2::smallint), (3::smallint), (5::smallint)) AS v (kind) CROSS JOIN LATERAL (
              SELECT f.kind, f.floor, f.raised_at FROM floors f
              WHERE f.kind = v.kind AND f.task = '' AND f.queue = '' AND f.priority = 0 ORDER BY f.version DESC LIMIT 1) AS k) AS f;
END $$;

-- Claim number `num` of the worker `who`, which knows the tasks `known`, serves the queues `served` (none: all queues) and has
-- `free` seats. The same number again returns the same batch. Without `offers` the claim takes runs and nothing else: see
-- ClaimRequest. Returns rows: the runs of the batch, the due schedules, the lapsed leases, and a header at the end.
-- `ready`: the token of this claim, if the worker may be handed a run after it; `heard_at`: the server process of the connection
-- that listens. `started`: the run that the worker was handed, and started, since its last claim. See hand_over.
-- Lock order: workers (1), the row of `who`; specs (3). The rows of queue, schedules and leases are locked SKIP LOCKED.
CREATE OR REPLACE FUNCTION claim(
    me text, skew float8, seen float8, who text, num bigint, known text[], served text[], free integer, seconds float8,
    report_ text, t_tasks text[], t_counts text[], t_waits text[], t_durations text[], offers boolean DEFAULT true,
    t_origins text[] DEFAULT NULL, c_whats text[] DEFAULT '{}', c_names text[] DEFAULT NULL, c_reasons text[] DEFAULT NULL,
    c_counts bigint[] DEFAULT NULL, ready text DEFAULT NULL, heard_at integer DEFAULT NULL, started text DEFAULT NULL
) RETURNS SETOF claimed
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now float8;
    state worker_states;
    around record;
    last bigint;
    took text[];
    places tid[];  -- where the leases of `took` are, if one statement has made them all
    queues text[] := ARRAY(SELECT kept_queue(s) FROM unnest(served) AS s);
    startable text[];
    l_tasks text[];  -- the lanes of the startable tasks
    l_queues text[];
    l_priorities smallint[];
    late text[] := '{}';
    opened text[] := '{}';
    gates text[] := '{}';
    tasks text[] := '{}';
    dues float8[] := '{}';
    more record;
    touched text[] := '{}';
    hinted text[] := '{}';
    passed_over boolean := false;
    again boolean := false;
    skipped boolean := false;
    fresh boolean;
    shown text[] := CASE WHEN offers THEN known ELSE '{}' END;  -- the tasks by which others know the worker
    answered bigint;
    ticking bigint := 0;  -- the due schedules that this claim returns
    unheard text;  -- a run that the worker was handed and has not started
    wake float8;
BEGIN
    -- Race: a hint may change the state before the lock is got; then the new version is locked and returned.
    SELECT s.* INTO state FROM worker_states s WHERE s.name = who ORDER BY s.version DESC LIMIT 1 FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        INSERT INTO workers VALUES (who, shown, served) ON CONFLICT DO NOTHING;
        INSERT INTO worker_states (name, version, n, seen_at, idle)
        SELECT who, 0, 0, 0, 0 WHERE NOT EXISTS (SELECT FROM worker_states s WHERE s.name = who);
        SELECT s.* INTO state FROM worker_states s WHERE s.name = who ORDER BY s.version DESC LIMIT 1 FOR NO KEY UPDATE;
    END IF;
    last := state.n; took := state.batch;
    fresh := num > last;
    now := now_of(skew, seen, true);
    around := look_around(who, known, shown, served, offers, now);
    IF around.moved THEN UPDATE workers w SET tasks = shown, queues = served WHERE w.name = who; END IF;
    startable := around.startable;
    IF around.expired THEN
        late := ARRAY(SELECT q.id FROM queue q WHERE q.expires_at BETWEEN around.expiry_floor AND now AND q.hold <> 3
                      ORDER BY q.expires_at LIMIT {EXPIRED_AT_ONCE});
    END IF;
    IF around.opened THEN
        opened := ARRAY(SELECT DISTINCT r.task FROM rates r WHERE r.opens_at BETWEEN around.rate_floor AND now);
    END IF;
    IF around.gated THEN
        gates := lock_gates(opened
            || ARRAY(SELECT DISTINCT q.task::text FROM queue q WHERE q.id = ANY(late))
            || ARRAY(SELECT DISTINCT c.task::text FROM queue c WHERE c.id = ANY(ARRAY(  -- and of the runs that wait for their end
                     SELECT w.run FROM queue q CROSS JOIN LATERAL (SELECT w.run FROM waits w WHERE w.ended = ANY(
                         ARRAY[q.id, '*' || q.task || ' ' || coalesce(q.unique_key, q.key, '')]) OFFSET 0) AS w
                     WHERE q.id = ANY(late)) || gathers_of(late)))
            || ARRAY(SELECT DISTINCT c.task::text FROM callbacks c WHERE c.run = ANY(late))  -- and of those that their end calls
            || ARRAY(SELECT l.task FROM lanes(ARRAY(SELECT s.name::text FROM specs s
                                                    WHERE s.gated AND s.name = ANY(startable)), queues) l WHERE l.head <= now));
        now := now_of(skew, seen, false);
        -- Race: a gated task whose gate is not locked got its first due run, or its gate, after the look above. This claim
        -- leaves it for the next claim.
        around.startable := ARRAY(SELECT u FROM unnest(startable) u
            WHERE u = ANY(gates) AND NOT EXISTS (SELECT FROM specs s WHERE s.name = u AND NOT s.limits <@ gates)
            OR NOT EXISTS (SELECT FROM specs s WHERE s.name = u AND s.gated));
    END IF;
    IF state.handed IS NOT NULL AND num >= last THEN  -- a whole lease: the worker has it, or this claim returns it
        UPDATE leases l SET until = after(now, seconds), claim_n = num
        WHERE l.id = state.handed AND l.worker = who AND l.claim_n = last;
        IF FOUND AND fresh AND state.handed IS DISTINCT FROM started THEN unheard := state.handed; END IF;
    END IF;
    IF late <> '{}' THEN
        SELECT e.touched, e.tasks, e.dues INTO touched, tasks, dues FROM expire(late, now) e;
    END IF;
    IF fresh THEN
        took := '{}';
        IF opened <> '{}' THEN
            SELECT * INTO more FROM unpark_opened(now);
            tasks := tasks || more.tasks;
            dues := dues || more.dues;
        END IF;
        IF free - (unheard IS NOT NULL)::integer > 0 AND around.startable <> '{}' THEN
            more := take_all(who, num, startable, around.startable, queues, gates, free - (unheard IS NOT NULL)::integer, seconds, now);
            took := more.batch; places := CASE WHEN unheard IS NULL THEN more.places END; passed_over := more.passed_over; again := more.again; skipped := more.skipped;
            l_tasks := more.all_tasks; l_queues := more.all_queues; l_priorities := more.all_priorities;
        END IF;
        took := unheard || took;
    END IF;
    IF NOT fresh THEN
        took := ARRAY(SELECT l.id FROM leases l WHERE l.id = ANY(took) AND l.worker = who AND l.claim_n = num);
    END IF;
    answered := 0;
    IF places IS NOT NULL THEN
        RETURN QUERY SELECT 'run', NULL::text, NULL::text, {leases_view} FROM leases
            WHERE leases.ctid = ANY(places) ORDER BY leases.priority DESC, leases.due_at, leases.seq;
        answered := cardinality(places);
    ELSIF took <> '{}' THEN
        RETURN QUERY SELECT 'run', NULL::text, NULL::text, l.* FROM lease_runs l
            WHERE l.id = ANY(took) ORDER BY l.priority DESC, l.due_at, l.seq;
        GET DIAGNOSTICS answered = ROW_COUNT;
    END IF;
    IF around.ticking AND (cardinality(known) > 0 OR free > 0) THEN
        RETURN QUERY WITH due AS MATERIALIZED (
            SELECT s.ctid AS place, s.look_at FROM schedules s WHERE s.look_at BETWEEN around.schedule_floor AND now
            ORDER BY s.look_at LIMIT {DUE_SCHEDULES} FOR UPDATE SKIP LOCKED
        ), offered AS (
            UPDATE schedules s SET change = s.change + 1, look_at = after(now, {OFFER_AGAIN}) FROM due WHERE s.ctid = due.place
            RETURNING s.id::text, as_json(s) AS json, due.look_at
        )
        SELECT 'schedule', o.id, o.json, (NULL::runs).* FROM offered o ORDER BY o.look_at;
        GET DIAGNOSTICS ticking = ROW_COUNT;
    END IF;
    IF NOT offers THEN
        answered := free;  -- the caller is not idle, and wakes for nobody
    ELSIF answered < free THEN
        wake := wake_at(who, known, served, startable, queues, l_tasks, l_queues, l_priorities, again OR NOT fresh, skipped,
                        around.gated, around.schedule_floor, now);
    ELSE
        wake := next_schedule(who, around.schedule_floor, now);
    END IF;
    UPDATE worker_states w SET version = w.version + 1, n = greatest(num, last),
        batch = CASE WHEN fresh THEN took ELSE w.batch END,
        seen_at = now, idle = CASE WHEN answered < free THEN 1 ELSE 0 END,
        wake_at = CASE WHEN answered < free THEN wake END,
        token = CASE WHEN answered = 0 AND free > 0 THEN ready END, ear = heard_at, lasts = seconds, spare = free > 1,
        handed = CASE WHEN num < last THEN w.handed END,
        report = CASE WHEN fresh THEN coalesce(report_, w.report) ELSE w.report END
    WHERE w.name = who AND w.version = state.version;
    IF around.lapsed THEN
        RETURN QUERY WITH old AS MATERIALIZED (
            SELECT l.ctid AS place FROM leases l WHERE l.until BETWEEN around.lease_floor AND now AND (l.offer_at IS NULL OR l.offer_at <= now)
            ORDER BY l.until LIMIT {OFFERS} FOR UPDATE SKIP LOCKED
        ), offered AS (
            UPDATE leases l SET offer_at = after(now, {OFFER_AGAIN}) FROM old WHERE l.ctid = old.place RETURNING l.id
        )
        SELECT 'lapsed', NULL::text, NULL::text, l.* FROM lease_runs l WHERE l.id = ANY(ARRAY(SELECT o.id FROM offered o))
        ORDER BY l.until + 0;
    END IF;
    IF fresh AND t_tasks <> '{}' THEN PERFORM chart(now, t_tasks, t_counts, t_waits, t_durations, t_origins); END IF;
    IF fresh AND c_whats <> '{}' THEN INSERT INTO counted SELECT * FROM unnest(c_whats, c_names, c_reasons, c_counts); END IF;
    IF known = '{}' AND free = 0 THEN  -- the worker stops: wake another one, which wakes at the coming times instead
        tasks := tasks || NULL::text;
        dues := dues || now;
    END IF;
    IF tasks <> '{}' THEN hinted := to_hint(tasks, dues, now); END IF;
    IF around.recorded THEN
        PERFORM record_events(me, 'runs', NULL, touched || CASE WHEN fresh THEN array_remove(took, unheard) END,
                              NULL, NULL, NULL, NULL, now);
    END IF;
    IF hinted <> '{}' OR touched <> '{}' THEN PERFORM send_hints(me, hinted, touched); END IF;
    IF (took <> '{}' OR ticking > 0 OR state.handed IS NOT NULL)
        AND (now BETWEEN around.raised_at AND around.raised_at + {RAISE_EVERY}) IS NOT TRUE THEN
        PERFORM raise_floors(took || state.handed, now);
    END IF;
    RETURN QUERY SELECT 'header', NULL::text, json_build_object('now', now,
        'wake', CASE WHEN wake IS NOT NULL THEN greatest(wake - now, 0) END, 'passed_over', passed_over,
        'hinted', hinted, 'touched', touched, 'orders',
        (SELECT json_build_array(w.seats, w.quiet, w.stop) FROM workers w WHERE w.name = who),
        'overrides', CASE WHEN took <> '{}' AND around.overridden THEN (
            SELECT json_agg(o.spec::json) FROM specs o WHERE o.name = ANY(ARRAY(
                SELECT DISTINCT 'override ' || l.task FROM leases l WHERE l.id = ANY(took)))) END)::text, (NULL::runs).*;
END $$;

-- Offer the schedules `ids`, which the claim at `claimed_at` got and its client could not read, again only after `seconds`: else
-- every claim would get them. A schedule that was changed or offered again since that claim is left as it is.
CREATE OR REPLACE FUNCTION set_aside(me text, skew float8, seen float8, ids text[], claimed_at float8, seconds float8)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now float8 := now_of(skew, seen, true);
BEGIN
    PERFORM lock_schedules(ids);
    UPDATE schedules s SET change = s.change + 1, look_at = greatest(after(claimed_at, seconds), now)
    WHERE s.ctid = ANY(ARRAY(SELECT schedule_place(i) FROM unnest(ids) AS i)) AND s.look_at = after(claimed_at, {OFFER_AGAIN});
END $$;
