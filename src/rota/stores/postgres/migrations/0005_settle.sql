-- settle and renew: what becomes of runs that were claimed.

CREATE TYPE said AS (
    id text, fence integer, worker text, state text, reason text, result bytea, delay float8, charge text, error text,
    attempt text, lost boolean, called boolean, mark boolean, progress text, saved bytea, stops text
);

-- The list of a run's attempts with one more; the client renders it but for what only the store knows. It begins with
-- the fence, the worker and the outcome, which is what `was_settled` looks for.
CREATE FUNCTION attempts_of(l leases, attempt text, now float8) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cardinality(l.attempts) >= 20 THEN l.attempts[cardinality(l.attempts) - 18:] ELSE l.attempts END
        || ('{"fence":' || l.fence || ',"worker":' || to_json(l.worker)::text || ',' || attempt
            || ',"claimed_at":' || l.claimed_at || ',"ended_at":' || now || '}')
$$;

-- A zombie shares its fence with the rescuer that settled it as lost: only the same kind of ending is a resend.
CREATE FUNCTION was_settled(s said) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM runs r CROSS JOIN unnest(r.attempts) AS a
        CROSS JOIN (VALUES ('{"fence":' || s.fence || ',"worker":' || to_json(s.worker)::text || ',')) AS claim (text)
        WHERE r.id = s.id AND starts_with(a, claim.text) AND starts_with(a, claim.text || '"outcome":"lost"') = s.lost)
$$;

-- The end of a run that was called: into finished. Its lease is gone already.
CREATE FUNCTION finish(l leases, s said, final text, why text, now float8) RETURNS void LANGUAGE sql AS $$
    INSERT INTO finished (seq, priority, fence, failures, losses, created_at, due_at, finished_at, expires_at, marked,
        awaited, cancel_asked, pause_asked, id, task, key, unique_key, state, reason, body, result, needs, rest,
        attempts, note, error, progress, saved)
    VALUES (l.seq, l.priority, l.fence, l.failures + (s.charge = 'failure')::integer,
        l.losses + (s.charge = 'loss')::integer, l.created_at, l.due_at, now, l.expires_at, l.marked, l.awaited,
        l.cancel_asked, l.pause_asked, l.id, l.task, l.key, l.unique_key, final, why, l.body, s.result, l.needs,
        l.rest, attempts_of(l, s.attempt, now), l.note, s.error, coalesce(s.progress, l.progress), coalesce(s.saved, l.saved))
$$;

CREATE FUNCTION put_mark(l leases, final text, now float8) RETURNS void LANGUAGE sql AS $$
    INSERT INTO marks AS m (task, key, succeeded_at, finished_at, failures)
    SELECT l.task, coalesce(l.unique_key, l.key, ''), CASE final WHEN 'succeeded' THEN now END, now,
           CASE final WHEN 'succeeded' THEN 0 ELSE 1 END
    WHERE final IN ('succeeded', 'failed')
    ON CONFLICT (task, key) DO UPDATE SET finished_at = now,
        succeeded_at = CASE final WHEN 'succeeded' THEN now ELSE m.succeeded_at END,
        failures = CASE final WHEN 'succeeded' THEN 0 ELSE m.failures + 1 END
$$;

-- A run waits again. If one with its unique key waits already, that one goes on in its stead, and this one is
-- superseded. The insert waits for whoever is putting an equal right now; then the loop meets it.
CREATE FUNCTION requeue(
    l leases, s said, now float8,
    OUT tasks text[], OUT dues float8[], OUT touched text[], OUT heir text, OUT late text, OUT late_key text
) LANGUAGE plpgsql AS $$
DECLARE
    due float8 := CASE WHEN s.delay > 0 THEN after(now, s.delay) ELSE l.due_at END;
    lost_count integer := l.losses + (s.charge = 'loss')::integer;
    failed_count integer := l.failures + (s.charge = 'failure')::integer;
    holder queue;
    gone record;
BEGIN
    tasks := '{}'; dues := '{}'; touched := '{}';
    LOOP
        INSERT INTO queue (seq, priority, hold, fence, failures, losses, created_at, due_at, expires_at, marked, awaited,
            id, task, key, unique_key, body, needs, rest, attempts, note, error, progress, saved)
        VALUES (l.seq, l.priority, CASE WHEN l.pause_asked THEN 3 ELSE 0 END, l.fence, failed_count, lost_count,
            l.created_at, due, CASE WHEN NOT s.called THEN l.expires_at END, l.marked, l.awaited, l.id, l.task, l.key,
            l.unique_key, l.body, l.needs, l.rest, attempts_of(l, s.attempt, now), l.note, s.error,
            coalesce(s.progress, l.progress), coalesce(s.saved, l.saved))
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            IF NOT l.pause_asked THEN
                tasks := tasks || l.task::text;
                dues := dues || due;
            END IF;
            RETURN;
        END IF;
        SELECT * INTO holder FROM queue q WHERE q.task = l.task AND q.unique_key = l.unique_key FOR UPDATE;
        IF FOUND AND holder.hold <> 3 AND holder.expires_at <= now THEN
            SELECT * INTO gone FROM end_waiting(ARRAY[holder.id::text], 'expired', NULL, now);
            late := holder.id; late_key := holder.key;
            touched := touched || gone.ended; tasks := tasks || gone.tasks; dues := dues || gone.dues;
        ELSIF FOUND THEN
            UPDATE queue SET due_at = least(due_at, due), failures = greatest(failures, failed_count),
                hold = CASE WHEN hold = 1 THEN 0 ELSE hold END
            WHERE id = holder.id RETURNING due_at INTO due;
            heir := holder.id;
            tasks := tasks || holder.task::text;
            dues := dues || due;
            RETURN;
        END IF;
    END LOOP;
END $$;

-- Many runs of gated tasks have ended: `freed` for all of them, a look-up per key.
CREATE FUNCTION free_all(of_task text[], of_key text[], now float8, OUT tasks text[], OUT dues float8[])
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

-- One settlement that needs thought: a requeue, a mark, someone who waits for the end, which is `wanted` then.
CREATE FUNCTION settle_one(
    s said, now float8, wanted text[], OUT verdict text, OUT tasks text[], OUT dues float8[], OUT touched text[],
    OUT d_task text, OUT d_key text, OUT heir text, OUT late text, OUT late_key text
) LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    final text := s.state;
    why text := s.reason;
    got record;
    met text[];
    room float8[];
BEGIN
    tasks := '{}'; dues := '{}'; touched := '{}';
    SELECT * INTO l FROM leases WHERE id = s.id FOR UPDATE;
    IF NOT FOUND OR l.fence <> s.fence OR l.worker <> s.worker THEN
        verdict := CASE WHEN was_settled(s) THEN 'already' ELSE 'stale' END;
        RETURN;
    ELSIF s.lost AND l.until > now THEN
        verdict := 'stale';
        RETURN;
    END IF;
    verdict := 'applied';
    touched := ARRAY[s.id];
    DELETE FROM leases WHERE id = s.id;
    d_task := l.task; d_key := l.key;
    IF final IS NULL AND l.cancel_asked THEN
        final := 'cancelled'; why := 'cancelled';  -- a finish beats a wish, a requeue honours it
    END IF;
    IF final IS NULL THEN
        SELECT * INTO got FROM requeue(l, s, now);
        tasks := got.tasks; dues := got.dues; touched := touched || got.touched; heir := got.heir;
        late := got.late; late_key := got.late_key;
        IF heir IS NOT NULL THEN
            l.pause_asked := false;
            IF s.delay > 0 THEN l.due_at := after(now, s.delay); END IF;
            IF s.called THEN l.expires_at := NULL; END IF;
            final := 'cancelled'; why := 'superseded';
        END IF;
    END IF;
    IF final IS NOT NULL THEN
        PERFORM finish(l, s, final, why, now);
        IF l.marked AND s.mark THEN PERFORM put_mark(l, final, now); END IF;
        met := met_by(l.id, l.awaited, l.marked, l.task, coalesce(l.unique_key, l.key, ''), final);
        IF met && wanted THEN  -- after its mark: those behind it are judged by that
            SELECT * INTO got FROM release(met, now);
            tasks := tasks || got.tasks; dues := dues || got.dues;
        END IF;
    END IF;
    IF l.gated OR EXISTS (SELECT FROM specs WHERE name = l.task AND gated) THEN
        room := freed(l.task, l.key, true, now);
        tasks := tasks || array_fill(l.task::text, ARRAY[cardinality(room)]);
        dues := dues || room;
    END IF;
    IF s.stops IS NOT NULL AND final IS NOT NULL THEN
        SELECT * INTO got FROM cancel_group(s.stops, '{}', '{}', 'stopped', l.task || ' ' || final, now);
        tasks := tasks || got.tasks; dues := dues || got.dues; touched := touched || got.ended;
    END IF;
END $$;

-- The runs of this batch that are marked each under a name of its own, and that nobody waits for by id.
CREATE FUNCTION marked_alone(ids text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(m.id), '{}') FROM (
        SELECT l.id::text, l.awaited, count(*) OVER (PARTITION BY l.task, coalesce(l.unique_key, l.key, '')) AS equals
        FROM leases l WHERE l.id = ANY(ids) AND l.marked) AS m
    WHERE m.equals = 1 AND NOT m.awaited
$$;

-- The endings that need no thought, all at once: of runs without a mark, and of those in `alone`, with their marks.
CREATE FUNCTION finish_many(
    alone text[], gates text[], now float8,
    ids text[], fences integer[], workers_ text[], states text[], reasons text[], results bytea[], charges text[],
    errors text[], attempts_ text[], losts boolean[], marks_ boolean[], progresses text[], saveds bytea[],
    OUT done text[], OUT freed_tasks text[], OUT freed_keys text[], OUT met text[]
) LANGUAGE plpgsql AS $$
BEGIN
    WITH s AS MATERIALIZED (
        SELECT * FROM unnest(ids, fences, workers_, states, reasons, results, charges, errors, attempts_, losts, marks_,
            progresses, saveds) AS s (id, fence, worker, state, reason, result, charge, error, attempt, lost, mark,
            progress, saved)
        WHERE s.state IS NOT NULL ORDER BY s.id COLLATE "C"
    ), gone AS (
        DELETE FROM leases l USING s
        WHERE l.id = s.id AND l.fence = s.fence AND l.worker = s.worker AND NOT l.awaited
          AND (NOT l.marked OR l.id = ANY(alone)) AND (s.lost IS NOT TRUE OR l.until <= now)
        RETURNING l.*, s.state, s.reason, s.result, s.charge, s.error AS new_error, s.attempt, s.mark IS NOT FALSE AS mark,
            s.progress AS new_progress, s.saved AS new_saved
    ), kept AS (
        INSERT INTO finished (seq, priority, fence, failures, losses, created_at, due_at, finished_at, expires_at,
            marked, awaited, cancel_asked, pause_asked, id, task, key, unique_key, state, reason, body, result,
            needs, rest, attempts, note, error, progress, saved)
        SELECT g.seq, g.priority, g.fence, g.failures + (g.charge IS NOT DISTINCT FROM 'failure')::integer,
            g.losses + (g.charge IS NOT DISTINCT FROM 'loss')::integer, g.created_at, g.due_at, now, g.expires_at,
            g.marked, false, g.cancel_asked, g.pause_asked, g.id, g.task, g.key, g.unique_key, g.state, g.reason,
            g.body, g.result, g.needs, g.rest,
            CASE WHEN cardinality(g.attempts) >= 20 THEN g.attempts[cardinality(g.attempts) - 18:] ELSE g.attempts END
            || ('{"fence":' || g.fence || ',"worker":' || to_json(g.worker)::text || ',' || g.attempt
                || ',"claimed_at":' || g.claimed_at || ',"ended_at":' || now || '}'),
            g.note, g.new_error, coalesce(g.new_progress, g.progress), coalesce(g.new_saved, g.saved)
        FROM gone g
    ), remembered AS (
        INSERT INTO marks AS m (task, key, succeeded_at, finished_at, failures)
        SELECT g.task, coalesce(g.unique_key, g.key, ''), CASE g.state WHEN 'succeeded' THEN now END, now,
               CASE g.state WHEN 'succeeded' THEN 0 ELSE 1 END
        FROM gone g WHERE g.marked AND g.mark AND g.state IN ('succeeded', 'failed')
        ORDER BY g.task COLLATE "C", coalesce(g.unique_key, g.key, '') COLLATE "C"
        ON CONFLICT (task, key) DO UPDATE SET finished_at = now,
            succeeded_at = coalesce(excluded.succeeded_at, m.succeeded_at),
            failures = CASE excluded.failures WHEN 0 THEN 0 ELSE m.failures + 1 END
    )
    SELECT coalesce(array_agg(g.id::text), '{}'), array_agg(g.task::text) FILTER (WHERE g.task = ANY(gates)),
           array_agg(g.key::text) FILTER (WHERE g.task = ANY(gates))
    INTO done, freed_tasks, freed_keys FROM gone g;
    IF alone <> '{}' THEN
        met := ARRAY(SELECT m FROM finished f CROSS JOIN unnest(
            met_by(f.id, false, f.marked, f.task, coalesce(f.unique_key, f.key, ''), f.state)) AS m
            WHERE f.id = ANY(done));
    END IF;
END $$;

-- Compare-and-set on (run, fence, worker): a standby that never heard of a claim hands its fence out again. Most endings
-- need no thought and go in one statement; `simple` says that no run comes twice in the batch and none stops its group.
-- `verdicts` is NULL where all are applied.
CREATE FUNCTION settle(
    me text, skew float8, seen float8, simple boolean,
    ids text[], fences integer[], workers_ text[], states text[], reasons text[], results bytea[], delays float8[], charges text[],
    errors text[], attempts_ text[], losts boolean[], calleds boolean[], marks_ boolean[], progresses text[],
    saveds bytea[], stops text[],
    OUT now float8, OUT hinted text[], OUT touched text[], OUT verdicts text[], OUT unheard text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    gates text[] := '{}';
    done text[];
    alone text[];
    wanted text[];
    locked boolean;
    one record;
    got record;
    more record;
    tasks text[] := '{}'; dues float8[] := '{}';
    d_tasks text[] := '{}'; d_keys text[] := '{}'; d_reasons text[] := '{}'; d_runs text[] := '{}';
BEGIN
    -- Without the lock on its gate, a settle and a claim that parks the next run of the key can miss each other, and
    -- that run waits for ever.
    IF EXISTS (SELECT FROM specs WHERE gated) THEN
        gates := lock_gates(ARRAY(SELECT DISTINCT l.task::text FROM leases l WHERE l.id = ANY(ids))
                            || CASE WHEN stops <> '{}' THEN tasks_in(stops) END);
    END IF;
    now := now_of(skew, seen, true);
    -- Who comes to wait for a run meanwhile is not seen here; then that run is left for the loop below.
    locked := NOT simple OR EXISTS (SELECT FROM leases l WHERE l.id = ANY(ids) AND (l.marked OR l.awaited));
    IF locked THEN
        wanted := lock_ends(ids);
        alone := CASE WHEN simple THEN marked_alone(ids) END;
    END IF;
    IF simple THEN
        SELECT * INTO got FROM finish_many(coalesce(alone, '{}'), gates, now, ids, fences, workers_, states, reasons, results,
            charges, errors, attempts_, losts, marks_, progresses, saveds);
        done := got.done;
        IF got.freed_tasks IS NOT NULL THEN
            SELECT r.tasks, r.dues INTO tasks, dues FROM free_all(got.freed_tasks, got.freed_keys, now) r;
        END IF;
        IF got.met && wanted THEN  -- after their marks: those behind them are judged by these
            SELECT * INTO more FROM release(got.met, now);
            tasks := tasks || more.tasks; dues := dues || more.dues;
        END IF;
    END IF;
    done := coalesce(done, '{}');
    touched := done;
    IF cardinality(done) < cardinality(ids) THEN
        IF NOT locked THEN wanted := lock_ends(ids); END IF;
        verdicts := '{}';
        FOR one IN
            SELECT s.id, ROW(s.id, s.fence, s.worker, s.state, s.reason, s.result, s.delay, coalesce(s.charge, 'none'),
                s.error, s.attempt, coalesce(s.lost, false), coalesce(s.called, true), coalesce(s.mark, true), s.progress,
                s.saved, s.stops)::said AS said
            FROM unnest(ids, fences, workers_, states, reasons, results, delays, charges, errors, attempts_, losts,
                calleds, marks_, progresses, saveds, stops) WITH ORDINALITY AS s (id, fence, worker, state, reason,
                result, delay, charge, error, attempt, lost, called, mark, progress, saved, stops, place) ORDER BY s.place
        LOOP
            IF one.id = ANY(done) THEN
                verdicts := verdicts || 'applied'::text;
                CONTINUE;
            END IF;
            SELECT * INTO got FROM settle_one(one.said, now, wanted);
            verdicts := verdicts || got.verdict;
            touched := touched || got.touched; tasks := tasks || got.tasks; dues := dues || got.dues;
            IF got.late IS NOT NULL THEN
                d_tasks := d_tasks || got.d_task; d_keys := d_keys || got.late_key;
                d_reasons := d_reasons || 'expired'::text; d_runs := d_runs || got.late;
            END IF;
            IF got.heir IS NOT NULL THEN
                d_tasks := d_tasks || got.d_task; d_keys := d_keys || got.d_key;
                d_reasons := d_reasons || 'superseded'::text; d_runs := d_runs || got.heir;
            END IF;
        END LOOP;
        PERFORM decide(d_tasks, d_keys, d_reasons, NULL, d_runs, NULL, NULL, now);
    END IF;
    hinted := hint(tasks, dues, now);
    -- A worker gives back and claims at the same time: then neither sees the other, and it is not idle for us yet.
    unheard := CASE WHEN cardinality(hinted) = 0 THEN ARRAY(
        SELECT DISTINCT a.task FROM unnest(tasks, dues) AS a (task, due) WHERE a.due <= now LIMIT 20) ELSE '{}' END;
    PERFORM tell(me, hinted, touched, unheard);
END $$;

-- Extend what is still held, and keep what its handlers noted. A lapsed lease that nobody has rescued is still held.
CREATE FUNCTION renew(
    me text, skew float8, seen float8, ids text[], fences integer[], workers_ text[], seconds float8, noted boolean[],
    progresses text[], saveds bytea[], OUT now float8, OUT answers text[], OUT touched text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    PERFORM FROM leases l WHERE l.id = ANY(ids) ORDER BY l.id FOR NO KEY UPDATE;
    now := now_of(skew, seen, true);
    WITH r AS MATERIALIZED (
        SELECT * FROM unnest(ids, fences, workers_, noted, progresses, saveds) WITH ORDINALITY
            AS r (id, fence, worker, noted, progress, saved, place)
    ), held AS (
        UPDATE leases l SET until = after(now, seconds), offer_at = NULL, progress = coalesce(r.progress, l.progress),
            saved = coalesce(r.saved, l.saved)
        FROM (SELECT DISTINCT ON (r.id, r.fence, r.worker) * FROM r ORDER BY r.id, r.fence, r.worker, r.place) AS r
        WHERE l.id = r.id AND l.fence = r.fence AND l.worker = r.worker
        RETURNING l.id, l.fence, l.worker, l.cancel_asked, l.pause_asked, r.noted
    )
    SELECT array_agg(CASE WHEN h.id IS NULL THEN 'lost' WHEN h.cancel_asked THEN 'cancel' WHEN h.pause_asked THEN 'pause'
                          ELSE 'ok' END ORDER BY r.place),
           array_agg(r.id) FILTER (WHERE h.noted)
    INTO answers, touched FROM r LEFT JOIN held h ON h.id = r.id AND h.fence = r.fence AND h.worker = r.worker;
    PERFORM tell(me, NULL, touched);
END $$;
