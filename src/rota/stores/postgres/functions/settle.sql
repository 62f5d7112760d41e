-- twin: rota/stores/ledger/settle.py
-- settle: what becomes of runs that were claimed.

-- The runs of this batch that are writes_mark each under a name of its own, and that nobody waits for by id.
CREATE OR REPLACE FUNCTION marked_alone(ids text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(m.id), '{}') FROM (
        SELECT l.id::text, l.awaited, count(*) OVER (PARTITION BY l.task, coalesce(l.unique_key, l.key, '')) AS equals
        FROM leases l WHERE l.id = ANY(ids) AND l.writes_mark) AS m
    WHERE m.equals = 1 AND NOT m.awaited
$$;

-- The endings that need no thought, all at once: of runs without a mark, and of those in `alone`, with their marks.
CREATE OR REPLACE FUNCTION finish_many(
    alone text[], gates text[], now float8,
    {settle_parameters},
    OUT done text[], OUT freed_tasks text[], OUT freed_keys text[], OUT met text[]
) LANGUAGE plpgsql AS $$
BEGIN
    WITH s AS MATERIALIZED (
        SELECT * FROM unnest({settle_arrays}) AS s ({settle_fields})
        WHERE s.state IS NOT NULL ORDER BY s.id COLLATE "C"
    ), gone AS (
        DELETE FROM leases l USING s
        WHERE l.id = s.id AND l.fence = s.fence AND l.worker = s.worker AND NOT l.awaited
          AND (NOT l.writes_mark OR l.id = ANY(alone)) AND (s.lost IS NOT TRUE OR l.until <= now)
        RETURNING l.*, s.state, s.reason, s.result, s.charge, s.error AS new_error, s.attempt, s.mark IS NOT FALSE AS mark,
            s.progress AS new_progress, s.saved AS new_saved
    ), kept AS (
        INSERT INTO finished ({carried}, fence, due_at, expires_at, cancel_requested, pause_requested, note, failures, losses,
            finished_at, awaited, state, reason, result, attempts, error, progress, saved)
        SELECT {g.carried}, g.fence, g.due_at, g.expires_at, g.cancel_requested, g.pause_requested, g.note,
            g.failures + (g.charge IS NOT DISTINCT FROM 'failure')::integer,
            g.losses + (g.charge IS NOT DISTINCT FROM 'loss')::integer, now, false, g.state, g.reason, g.result,
            latest_attempts(g.attempts)
            || ('{"fence":' || g.fence || ',"worker":' || to_json(g.worker)::text || ',' || g.attempt
                || ',"claimed_at":' || g.claimed_at || ',"ended_at":' || now || '}'),
            g.new_error, coalesce(g.new_progress, g.progress), coalesce(g.new_saved, g.saved)
        FROM gone g
    ), remembered AS (
        INSERT INTO marks AS m (task, key, succeeded_at, finished_at, failures)
        SELECT g.task, coalesce(g.unique_key, g.key, ''), CASE g.state WHEN 'succeeded' THEN now END, now,
               CASE g.state WHEN 'succeeded' THEN 0 ELSE 1 END
        FROM gone g WHERE g.writes_mark AND g.mark AND g.state IN ('succeeded', 'failed')
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
            met_by(f.id, false, f.writes_mark, f.task, coalesce(f.unique_key, f.key, ''), f.state)) AS m
            WHERE f.id = ANY(done));
    END IF;
END $$;

-- Compare-and-set on (run, fence, worker): a standby that never heard of a claim hands its fence out again. Most endings
-- need no thought and go in one statement; `simple` says that no run comes twice in the batch and none stops its group.
-- `verdicts` is NULL where all are applied.
CREATE OR REPLACE FUNCTION settle(
    me text, skew float8, seen float8, simple boolean,
    {settle_parameters},
    OUT now float8, OUT hinted text[], OUT touched text[], OUT verdicts text[], OUT unheard text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    gates text[] := '{}';
    done text[] := '{}';
    again integer[] := '{}';
    alone text[];
    wanted text[];
    locked boolean;
    one record;
    got record;
    more record;
    tasks text[] := '{}'; dues float8[] := '{}';
    d_tasks text[] := '{}'; d_keys text[] := '{}'; d_reasons text[] := '{}'; d_runs text[] := '{}'; d_words text[] := '{}';
BEGIN
    touched := '{}';
    -- Without the lock on its gate, a settle and a claim that parks the next run of the key can miss each other, and
    -- that run waits for ever.
    IF EXISTS (SELECT FROM specs WHERE gated) THEN
        gates := lock_gates(ARRAY(SELECT DISTINCT l.task::text FROM leases l WHERE l.id = ANY(s_id))
                            || CASE WHEN s_stops <> '{}' THEN tasks_in(s_stops) END);
    END IF;
    now := now_of(skew, seen, true);
    -- What waits again comes into the queue, in the order of its keys, before any mark is written: see locks.sql. A batch
    -- that has a run twice stays in its order, because the first word about a run counts.
    IF simple OR cardinality(s_id) = (SELECT count(DISTINCT i) FROM unnest(s_id) AS i) THEN
        again := ARRAY(SELECT s.place::integer FROM unnest(s_id, s_state) WITH ORDINALITY AS s (id, state, place)
                       LEFT JOIN leases l ON l.id = s.id WHERE s.state IS NULL
                       ORDER BY l.task COLLATE "C", l.unique_key COLLATE "C", s.place);
    END IF;
    -- Who comes to wait for a run meanwhile is not seen here; then that run is left for the loop below.
    locked := NOT simple OR again <> '{}'
        OR EXISTS (SELECT FROM leases l WHERE l.id = ANY(s_id) AND (l.writes_mark OR l.awaited));
    IF locked THEN wanted := lock_ends(s_id, s_stops); END IF;
    FOR phase IN 1 .. 2 LOOP
        IF phase = 2 AND simple THEN
            alone := CASE WHEN locked THEN marked_alone(s_id) END;
            SELECT * INTO got FROM finish_many(coalesce(alone, '{}'), gates, now, {settle_arrays});
            done := got.done;
            touched := touched || done;
            IF got.freed_tasks IS NOT NULL THEN
                SELECT * INTO more FROM free_all(got.freed_tasks, got.freed_keys, now);
                tasks := tasks || more.tasks; dues := dues || more.dues;
            END IF;
            IF got.met && wanted THEN  -- after their marks, which decide about the runs that wait for them
                SELECT * INTO more FROM meet_needs(got.met, now);
                tasks := tasks || more.tasks; dues := dues || more.dues;
            END IF;
        END IF;
        CONTINUE WHEN phase = 1 AND again = '{}' OR phase = 2 AND cardinality(done) + cardinality(again) = cardinality(s_id);
        IF NOT locked THEN
            wanted := lock_ends(s_id, s_stops);
            locked := true;
        END IF;
        verdicts := coalesce(verdicts, array_fill('applied'::text, ARRAY[cardinality(s_id)]));
        FOR one IN
            SELECT s.id, s.place, ROW(s.id, s.fence, s.worker, s.state, s.reason, s.result, s.delay, coalesce(s.charge, 'none'),
                s.error, s.attempt, coalesce(s.lost, false), coalesce(s.called, true), coalesce(s.mark, true), s.progress,
                s.saved, s.stops)::said AS said
            FROM unnest({settle_arrays}) WITH ORDINALITY AS s ({settle_fields}, place)
            WHERE s.id <> ALL(done) AND (s.place = ANY(again)) = (phase = 1)
            ORDER BY array_position(again, s.place::integer), s.place
        LOOP
            SELECT * INTO got FROM settle_one(one.said, now, wanted);
            verdicts[one.place] := got.verdict;
            touched := touched || got.touched; tasks := tasks || got.tasks; dues := dues || got.dues;
            IF got.late IS NOT NULL THEN
                d_tasks := d_tasks || got.d_task; d_keys := d_keys || got.late_key;
                d_reasons := d_reasons || 'expired'::text; d_runs := d_runs || got.late; d_words := d_words || NULL::text;
            END IF;
            IF got.heir IS NOT NULL THEN
                d_tasks := d_tasks || got.d_task; d_keys := d_keys || got.d_key;
                d_reasons := d_reasons || 'superseded'::text; d_runs := d_runs || got.heir; d_words := d_words || NULL::text;
            END IF;
            IF got.stopped <> '{}' THEN
                d_tasks := d_tasks || got.stopped_tasks; d_keys := d_keys || got.stopped_keys;
                d_reasons := d_reasons || array_fill('stopped'::text, ARRAY[cardinality(got.stopped)]);
                d_runs := d_runs || got.stopped;
                d_words := d_words || array_fill(got.stopped_by, ARRAY[cardinality(got.stopped)]);
            END IF;
        END LOOP;
    END LOOP;
    PERFORM count_decisions(d_tasks, d_keys, d_reasons, NULL, d_runs, d_words, NULL, now);
    hinted := hint(tasks, dues, now);
    -- A worker gives back and claims at the same time: then neither sees the other, and it is not idle for us yet.
    unheard := CASE WHEN cardinality(hinted) = 0 THEN ARRAY(
        SELECT DISTINCT a.task FROM unnest(tasks, dues) AS a (task, due) WHERE a.due <= now LIMIT 20) ELSE '{}' END;
    PERFORM tell(me, hinted, touched, unheard);
END $$;
