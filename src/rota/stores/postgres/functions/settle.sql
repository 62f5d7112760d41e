-- twin: rota/stores/ledger/settle.py
-- settle: end or requeue claimed runs.

-- The runs of this batch that write a mark that no other run of the batch writes, and for whose id no run waits.
CREATE OR REPLACE FUNCTION sole_marks(ids text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(m.id), '{}') FROM (
        SELECT l.id::text, l.awaited, count(*) OVER (PARTITION BY l.task, coalesce(l.unique_key, l.key, '')) AS equals
        FROM leases l WHERE l.id = ANY(ids) AND l.writes_mark) AS m
    WHERE m.equals = 1 AND NOT m.awaited
$$;

-- Where the leases of these runs are (NULL: there is none), in the order of `ids`. `special`: one of them writes a mark, or a run
-- waits for its id. `counted`: one of them is counted in running.
CREATE OR REPLACE FUNCTION leases_of(ids text[], OUT places tid[], OUT special boolean, OUT counted boolean) LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(l.ctid), coalesce(bool_or(l.writes_mark OR l.awaited), false),
           coalesce(bool_or(l.gated OR l.limits IS NOT NULL), false)
    INTO places, special, counted
    FROM unnest(ids) AS i (id) LEFT JOIN LATERAL (
        SELECT l.ctid, l.writes_mark, l.awaited, l.gated, l.limits FROM leases l WHERE l.id = i.id OFFSET 0) AS l ON true;
END $$;

-- Settle claimed runs. A settlement is applied only if run, fence and worker are those of the lease. The fence alone is not
-- enough: after a failover, a standby that has not received a claim may give out the fence of that claim again.
-- `simple`: no run is twice in the batch, and no settlement stops a group. Then one statement ends most runs, and `settle_one`
-- handles the others. `verdicts` is NULL if all settlements are applied.
-- Lock order: specs (3), leases (4), names (5), queue (6), marks (7), decisions (8).
CREATE OR REPLACE FUNCTION settle(
    me text, skew float8, seen float8, simple boolean,
    {settle_parameters},
    OUT now float8, OUT hinted text[], OUT touched text[], OUT verdicts text[], OUT unheard text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    gates text[] := '{}';
    done text[] := '{}';
    again integer[] := '{}';
    found record;
    alone text[] := '{}';
    wanted text[];
    locked boolean;
    ended_at text;
    one record;
    got record;
    more record;
    tasks text[] := '{}'; dues float8[] := '{}'; more_tasks text[];
    d_tasks text[] := '{}'; d_keys text[] := '{}'; d_reasons text[] := '{}'; d_runs text[] := '{}'; d_notes text[] := '{}';
BEGIN
    touched := '{}';
    -- Race: a settle frees a seat of a key while a claim parks the next run of that key. Without the lock on the gate, neither
    -- would see the other, and that run would stay parked for ever.
    IF EXISTS (SELECT FROM specs WHERE gated) THEN
        gates := lock_gates(ARRAY(SELECT DISTINCT l.task::text FROM leases l WHERE l.id = ANY(s_id))
                            || ARRAY(SELECT DISTINCT n FROM leases l CROSS JOIN unnest(l.limits) AS n WHERE l.id = ANY(s_id))
                            || CASE WHEN s_stops <> '{}' THEN tasks_in(s_stops) END);
    END IF;
    now := now_of(skew, seen, true);
    -- Lock order: requeued runs enter the queue (6), in the order of their keys, before any mark (7) is written. A batch that
    -- has a run twice is settled in its own order, because the first settlement of a run counts.
    IF array_position(s_state, NULL) IS NOT NULL
       AND (simple OR cardinality(s_id) = (SELECT count(DISTINCT i) FROM unnest(s_id) AS i)) THEN
        again := ARRAY(SELECT s.place::integer FROM unnest(s_id, s_state) WITH ORDINALITY AS s (id, state, place)
                       LEFT JOIN LATERAL (SELECT l.task, l.unique_key FROM leases l WHERE l.id = s.id OFFSET 0) AS l ON true
                       WHERE s.state IS NULL
                       ORDER BY l.task COLLATE "C", l.unique_key COLLATE "C", s.place);
    END IF;
    -- Race: a put may set `awaited` after this look. Then the statement below leaves that run, and the loop settles it.
    found := leases_of(s_id);
    locked := NOT simple OR again <> '{}' OR found.special;
    IF locked THEN
        IF found.counted THEN
            PERFORM FROM leases l WHERE l.id = ANY(s_id) ORDER BY l.id FOR UPDATE;
            PERFORM lock_running(s_id, false);
        END IF;
        wanted := lock_ends(s_id, s_stops);
        IF simple THEN
            alone := sole_marks(s_id);
            found := leases_of(s_id);  -- a renewal may have moved them before they were locked
        END IF;
    END IF;
    FOR phase IN 1 .. 2 LOOP
        IF phase = 2 AND simple THEN
            -- End many runs by one statement: the runs that write no mark, and the runs in `alone` with their marks. Runs for
            -- whose id a run waits are left for `settle_one`, and so are runs that were renewed since the look: their rows have
            -- moved.
            ended_at := ',"ended_at":' || now || '}';
            WITH gone AS (
                DELETE FROM leases l USING (
                    SELECT * FROM unnest({settle_arrays}, found.places) AS s ({settle_fields}, place)
                    WHERE s.state IS NOT NULL ORDER BY s.id COLLATE "C") AS s
                WHERE l.ctid = s.place AND l.id || '' = s.id AND l.fence = s.fence AND l.worker = s.worker AND NOT l.awaited
                  AND (NOT l.writes_mark OR l.id = ANY(alone)) AND (s.lost IS NOT TRUE OR l.until <= now)
                RETURNING {l.carried}, l.fence, l.due_at, l.expires_at, l.cancel_requested, l.pause_requested, l.note,
                    l.failures + (s.charge IS NOT DISTINCT FROM 'failure')::integer AS failures,
                    l.losses + (s.charge IS NOT DISTINCT FROM 'loss')::integer AS losses, s.state, s.reason, s.result,
                    latest_attempts(l.attempts) || ('{"fence":' || l.fence || ',"worker":' || to_json(l.worker)::text || ','
                        || s.attempt || ',"claimed_at":' || l.claimed_at || ended_at) AS attempts,
                    s.error, coalesce(s.progress, l.progress) AS progress, coalesce(s.saved, l.saved) AS saved,
                    l.gated, l.limits, s.mark IS NOT FALSE AS mark
            ), kept AS (
                INSERT INTO finished ({carried}, fence, due_at, expires_at, cancel_requested, pause_requested, note, failures,
                    losses, state, reason, result, attempts, error, progress, saved, finished_at, awaited)
                SELECT {g.carried}, g.fence, g.due_at, g.expires_at, g.cancel_requested, g.pause_requested, g.note, g.failures,
                    g.losses, g.state, g.reason, g.result, g.attempts, g.error, g.progress, g.saved, now, false FROM gone g
            ), remembered AS (
                INSERT INTO marks AS m (task, key, succeeded_at, finished_at, failures)
                SELECT g.task, coalesce(g.unique_key, g.key, ''), CASE g.state WHEN 'succeeded' THEN now END, now,
                       CASE g.state WHEN 'succeeded' THEN 0 ELSE 1 END
                FROM gone g WHERE g.writes_mark AND g.mark AND g.state IN ('succeeded', 'failed')
                ORDER BY g.task COLLATE "C", coalesce(g.unique_key, g.key, '') COLLATE "C"
                ON CONFLICT (task, key) DO UPDATE SET finished_at = excluded.finished_at,
                    succeeded_at = coalesce(excluded.succeeded_at, m.succeeded_at),
                    failures = CASE excluded.failures WHEN 0 THEN 0 ELSE m.failures + 1 END
            )
            SELECT coalesce(array_agg(g.id::text), '{}') AS done,
                   array_agg(g.task::text) FILTER (WHERE g.task = ANY(gates)) AS freed_tasks,
                   array_agg(g.key::text) FILTER (WHERE g.task = ANY(gates)) AS freed_keys,
                   array_agg(g.task::text) FILTER (WHERE g.gated) AS counted_tasks,
                   array_agg(g.key::text) FILTER (WHERE g.gated) AS counted_keys,
                   CASE WHEN found.counted THEN (SELECT array_agg(n) FROM gone o CROSS JOIN unnest(o.limits) AS n) END AS names
            INTO got FROM gone g;
            done := got.done;
            touched := touched || done;
            IF found.counted THEN
                PERFORM count_running(got.counted_tasks || got.names, got.counted_keys, -1, now);
            END IF;
            IF got.freed_tasks IS NOT NULL THEN
                SELECT * INTO more FROM free_all(got.freed_tasks, got.freed_keys, now);
                tasks := tasks || more.tasks; dues := dues || more.dues;
            END IF;
            IF got.names IS NOT NULL THEN
                more_tasks := freed_by(got.names, now);
                tasks := tasks || more_tasks; dues := dues || array_fill(now, ARRAY[cardinality(more_tasks)]);
            END IF;
            IF alone <> '{}' THEN  -- after the marks are written: meet_needs reads them
                more_tasks := ARRAY(SELECT m FROM finished f CROSS JOIN unnest(
                    met_by(f.id, false, f.writes_mark, f.task, coalesce(f.unique_key, f.key, ''), f.state)) AS m
                    WHERE f.id = ANY(done));
                IF more_tasks && wanted THEN
                    SELECT * INTO more FROM meet_needs(more_tasks, now);
                    tasks := tasks || more.tasks; dues := dues || more.dues;
                END IF;
            END IF;
        END IF;
        CONTINUE WHEN phase = 1 AND again = '{}' OR phase = 2 AND cardinality(done) + cardinality(again) = cardinality(s_id);
        IF NOT locked THEN
            IF found.counted THEN PERFORM lock_running(s_id, true); END IF;
            wanted := lock_ends(s_id, s_stops);
            locked := true;
        END IF;
        verdicts := coalesce(verdicts, array_fill('applied'::text, ARRAY[cardinality(s_id)]));
        FOR one IN
            SELECT s.id, s.place, ROW(s.id, s.fence, s.worker, s.state, s.reason, s.result, s.delay, coalesce(s.charge, 'none'),
                s.error, s.attempt, coalesce(s.lost, false), coalesce(s.called, true), coalesce(s.mark, true), s.progress,
                s.saved, s.stops)::settlement AS settlement
            FROM unnest({settle_arrays}) WITH ORDINALITY AS s ({settle_fields}, place)
            WHERE s.id <> ALL(done) AND (s.place = ANY(again)) = (phase = 1)
            ORDER BY array_position(again, s.place::integer), s.place
        LOOP
            -- A stop ends the runs of its group that wait. A run of this batch that comes behind it was still running.
            SELECT * INTO got FROM settle_one(one.settlement, now, wanted,
                ARRAY(SELECT s_id[place] FROM unnest(again) AS place WHERE place > one.place));
            verdicts[one.place] := got.verdict;
            touched := touched || got.touched; tasks := tasks || got.tasks; dues := dues || got.dues;
            IF got.late IS NOT NULL THEN
                d_tasks := d_tasks || got.d_task; d_keys := d_keys || got.late_key;
                d_reasons := d_reasons || 'expired'::text; d_runs := d_runs || got.late; d_notes := d_notes || NULL::text;
            END IF;
            IF got.heir IS NOT NULL THEN
                d_tasks := d_tasks || got.d_task; d_keys := d_keys || got.d_key;
                d_reasons := d_reasons || 'superseded'::text; d_runs := d_runs || got.heir; d_notes := d_notes || NULL::text;
            END IF;
            IF got.stopped <> '{}' THEN
                d_tasks := d_tasks || got.stopped_tasks; d_keys := d_keys || got.stopped_keys;
                d_reasons := d_reasons || array_fill('stopped'::text, ARRAY[cardinality(got.stopped)]);
                d_runs := d_runs || got.stopped;
                d_notes := d_notes || array_fill(got.stopped_by, ARRAY[cardinality(got.stopped)]);
            END IF;
        END LOOP;
    END LOOP;
    IF strpos(array_to_string(touched, ' '), '.') > 0 THEN
        SELECT * INTO more FROM count_in_fan(touched, now);
        tasks := tasks || more.tasks; dues := dues || more.dues;
    END IF;
    IF d_tasks <> '{}' THEN PERFORM count_decisions(d_tasks, d_keys, d_reasons, NULL, d_runs, d_notes, NULL, now); END IF;
    hinted := '{}'; unheard := '{}';
    IF tasks <> '{}' THEN
        hinted := to_hint(tasks, dues, now);
        -- Race: a worker that gives runs back claims at the same time. Its claim does not see these runs, and this verb does not
        -- see that the worker is idle. So `unheard` names the tasks, and each process looks for an idle worker of its own.
        IF hinted = '{}' THEN
            unheard := ARRAY(SELECT DISTINCT a.task FROM unnest(tasks, dues) AS a (task, due) WHERE a.due <= now LIMIT 20);
        END IF;
    END IF;
    IF (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} THEN
        PERFORM record_settled(me, touched, s_id, s_worker, s_error, s_attempt, s_lost, now);
    END IF;
    PERFORM send_hints(me, hinted, touched, unheard);
END $$;
