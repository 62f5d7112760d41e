-- twin: rota/stores/ledger/admit.py
-- Admit a batch of runs.

-- The places in `items` at which the items of `found` are.
CREATE OR REPLACE FUNCTION places_of(items text[], found text[]) RETURNS integer[] LANGUAGE sql SET enable_hashjoin = on AS $$
    SELECT coalesce(array_agg(i.place::integer), '{}')
    FROM unnest(items) WITH ORDINALITY AS i (item, place) JOIN unnest(found) AS f (item) ON f.item = i.item
$$;

-- Is one of these needs the id of a run, as in a chain? Then that run has to be put first.
CREATE OR REPLACE FUNCTION is_chained(needs text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT EXISTS (SELECT FROM json_array_elements_text(needs::json) AS need WHERE strpos(need, ' ') = 0)
$$;

-- Admit easy runs by one statement, and return the ids of the admitted runs. A run is easy if it has no guard except `unique`
-- and no needs except names. Runs whose unique key another run has are not admitted here: the caller passes them to `admit`.
-- A big batch, as the ticks of many schedules are, consists mostly of easy runs.
-- Query plan: OFFSET 0 makes each NOT EXISTS a look-up by index. Without OFFSET 0 the planner makes a join of it, and with
-- statistics from when the queue was empty that join reads the whole index for every run (3,000 ticks in 4.9 s, not 0.6).
-- tests/stores/test_postgres_plans.py reads the plans of all verbs.
CREATE OR REPLACE FUNCTION admit_easy(news incoming[], arrived bigint[], now float8) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    came text[];
    back text[];
BEGIN
    WITH numbered AS MATERIALIZED (
        SELECT n.*, arrived[n.ordinality] AS seq, (
            SELECT coalesce(array_agg(w.need) FILTER (WHERE NOT w.met), '{}')
            FROM (SELECT j.need, EXISTS (
                      SELECT FROM marks m WHERE m.task = substr(j.need, 2, greatest(0, strpos(j.need, ' ') - 2))
                          AND m.key = substr(j.need, strpos(j.need, ' ') + 1)
                          AND CASE left(j.need, 1) WHEN '*' THEN m.finished_at ELSE m.succeeded_at END IS NOT NULL) AS met
                  FROM json_array_elements_text(n.needs::json) AS j (need)) AS w) AS remaining
        FROM unnest(news) WITH ORDINALITY AS n
    ), ins AS (
        INSERT INTO queue ({stored}, queue, share, seq, writes_mark, priority, created_at, due_at, lane_at, expires_at, needs, hold)
        SELECT {n.stored}, coalesce(n.queue, ''), n.share, n.seq, coalesce(n.writes_mark, false), coalesce(n.priority, 0), now,
               coalesce(n.at, after(now, coalesce(n.delay, 0))),
               lane_place(n.task, coalesce(n.queue, ''), coalesce(n.priority, 0)::smallint, coalesce(n.at, after(now, coalesce(n.delay, 0))), now),
               noted_expiry(CASE WHEN n.expires_after IS NOT NULL
                    THEN after(greatest(now, coalesce(n.at, after(now, coalesce(n.delay, 0)))), n.expires_after)
                    ELSE n.expires_at END, now), nullif(n.remaining, '{}'), CASE WHEN n.remaining <> '{}' THEN 2 ELSE 0 END
        FROM numbered n
        WHERE NOT (n.uniqueness IS NOT DISTINCT FROM 'done' AND EXISTS (
              SELECT FROM marks m WHERE m.task = n.task AND m.key = n.unique_key AND m.succeeded_at IS NOT NULL))
          AND NOT EXISTS (SELECT FROM specs s WHERE s.name = n.task AND NOT s.enabled)
          AND NOT EXISTS (SELECT FROM leases l WHERE l.id = n.id OFFSET 0)
          AND NOT EXISTS (SELECT FROM finished f WHERE f.id = n.id OFFSET 0)
          AND NOT EXISTS (SELECT FROM queue q WHERE q.task = n.task AND q.unique_key = n.unique_key OFFSET 0)
          AND NOT EXISTS (SELECT FROM leases l WHERE l.task = n.task AND l.unique_key = n.unique_key OFFSET 0)
        ORDER BY n.task COLLATE "C", n.unique_key COLLATE "C"
        ON CONFLICT DO NOTHING RETURNING id
    )
    SELECT array_agg(ins.id::text) INTO came FROM ins;
    -- Race: as in `admit`, the insert may have waited for a claim, and only a later statement sees the new lease. The runs in
    -- `back` are deleted again, and the caller passes them to `admit`.
    back := ARRAY(SELECT l.id::text FROM leases l WHERE l.id = ANY(came)
        UNION ALL SELECT f.id FROM finished f WHERE f.id = ANY(came)
        UNION ALL SELECT q.id FROM queue q WHERE q.id = ANY(came) AND q.unique_key || '' IS NOT NULL
            AND EXISTS (SELECT FROM leases l WHERE l.task = q.task AND l.unique_key = q.unique_key OFFSET 0)
        UNION ALL SELECT n.id FROM unnest(news) AS n WHERE n.uniqueness = 'done' AND n.id = ANY(came) AND EXISTS (
            SELECT FROM marks m WHERE m.task = n.task AND m.key = n.unique_key AND m.succeeded_at IS NOT NULL OFFSET 0));
    IF back <> '{}' THEN
        DELETE FROM queue WHERE id = ANY(back);
        came := ARRAY(SELECT c FROM unnest(came) c WHERE c <> ALL(back));
    END IF;
    INSERT INTO waits SELECT need, q.id FROM queue q CROSS JOIN unnest(q.needs) AS need
    WHERE q.id = ANY(came) AND q.needs IS NOT NULL ON CONFLICT DO NOTHING;
    INSERT INTO grouped SELECT n.id, n.grp FROM unnest(news) AS n WHERE n.grp IS NOT NULL AND n.id = ANY(came)
    ON CONFLICT DO NOTHING;
    RETURN came;
END $$;

-- Note in which queues the tasks have runs: see task_queues. The queue is NULL for the default one. Race: whoever finds its row
-- relies on it until its run is there for all to see, so `forget_queues` forgets nothing while one of these locks is held. In a
-- transaction of a caller that sees only what was there at its beginning, the row may be gone by now: it is added again.
CREATE OR REPLACE FUNCTION know_queues(of_task text[], of_queue text[]) RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock_shared(lock_class('queues'), 0) FROM unnest(of_queue) AS q WHERE q <> '' LIMIT 1;
    INSERT INTO task_queues SELECT DISTINCT n.task, n.queue FROM unnest(of_task, of_queue) AS n (task, queue)
    WHERE n.queue <> '' AND (current_setting('transaction_isolation') <> 'read committed'
                             OR NOT EXISTS (SELECT FROM task_queues t WHERE t.task = n.task AND t.queue = n.queue OFFSET 0))
$$;

-- Admit the runs of a batch. Returns a decision for each run (runs, reasons), the arrivals for `to_hint` (tasks, dues), the
-- expired runs that were ended (touched), and the decisions for `count_decisions` (d_*).
CREATE OR REPLACE FUNCTION admit_all(
    news incoming[], now float8,
    OUT runs text[], OUT reasons text[], OUT tasks text[], OUT dues float8[], OUT touched text[],
    OUT d_tasks text[], OUT d_keys text[], OUT d_reasons text[], OUT d_runs text[]
) LANGUAGE plpgsql AS $$
DECLARE
    new incoming;
    got record;
    due float8;
    place integer;
    came text[];
    places integer[];
    easies boolean[];
    stretch integer[];
    stretched integer := 0;
    admitted boolean[] := array_fill(false, ARRAY[cardinality(news)]);
    arrived bigint[];
BEGIN
    d_tasks := '{}'; d_keys := '{}'; d_reasons := '{}'; d_runs := '{}';
    runs := ARRAY(SELECT n.id FROM unnest(news) AS n);
    reasons := array_fill('accepted'::text, ARRAY[cardinality(runs)]);
    tasks := '{}'; dues := '{}'; touched := '{}';
    IF EXISTS (SELECT FROM unnest(news) AS n WHERE n.queue <> '') THEN
        PERFORM know_queues(ARRAY(SELECT n.task FROM unnest(news) AS n), ARRAY(SELECT n.queue FROM unnest(news) AS n));
    END IF;
    arrived := ARRAY(SELECT nextval('arrivals') FROM generate_series(1, cardinality(news)));
    -- Lock order: the runs are numbered (`arrived`) in the order of the batch, but they are admitted in the order of task and
    -- unique key: else two batches with the same keys would deadlock. So easy runs are admitted together only if no other run
    -- of the batch is between them in that order (a stretch). Runs of chains, and runs that share a key with them, are admitted
    -- last and in the order of the batch: no other batch has their keys. So are runs whose keys several tasks share: lock_uniques
    -- has locked these keys.
    IF cardinality(news) < 2 THEN
        places := ARRAY(SELECT generate_series(1, cardinality(news)));
        easies := ARRAY[false];
    ELSE
        SELECT array_agg(o.place), array_agg(o.easy) INTO places, easies FROM (
            SELECT n.ordinality::integer AS place, NOT n.chained AND n.cooldowns IS NULL AND n.max_pending IS NULL
                       AND n.fingerprint IS NULL AND n.callbacks IS NULL AND n.unique_row IS NULL
                       AND count(*) OVER (PARTITION BY n.id) = 1
                       AND (n.unique_key IS NULL OR count(*) OVER (PARTITION BY n.task, n.unique_key) = 1) AS easy
            FROM (SELECT i.*, bool_or(i.needs IS NOT NULL AND is_chained(i.needs) OR coalesce(i.unique_row LIKE 'unique %', false))
                              OVER (PARTITION BY i.task, i.unique_key, CASE WHEN i.unique_key IS NULL THEN i.id END) AS chained
                  FROM unnest(news) WITH ORDINALITY AS i) AS n
            ORDER BY n.chained, CASE WHEN NOT n.chained THEN n.task END COLLATE "C" NULLS FIRST,
                     CASE WHEN NOT n.chained THEN n.unique_key END COLLATE "C" NULLS FIRST, n.ordinality) AS o;
    END IF;
    FOR at IN 1 .. cardinality(places) LOOP
        IF at > stretched AND easies[at] THEN
            stretched := coalesce(array_position(easies, false, at), cardinality(easies) + 1) - 1;
            IF stretched - at >= 19 THEN
                stretch := places[at:stretched];
                came := admit_easy(ARRAY(SELECT news[p] FROM unnest(stretch) AS p),
                                   ARRAY(SELECT arrived[p] FROM unnest(stretch) AS p), now);
                FOREACH place IN ARRAY places_of(runs, came) LOOP admitted[place] := true; END LOOP;
                SELECT tasks || coalesce(array_agg(lane_name(q.task, q.queue)), '{}'), dues || coalesce(array_agg(q.due_at), '{}')
                INTO tasks, dues FROM queue q WHERE q.id = ANY(came) AND q.hold + 0 = 0;
            END IF;
        END IF;
        place := places[at];
        CONTINUE WHEN admitted[place];
        new := news[place];
        SELECT * INTO got FROM admit(new, now, arrived[place], cardinality(news) = 1);
        runs[place] := got.run;
        reasons[place] := got.reason;
        -- A run that joined itself was put before, perhaps by this put, sent again: that is no arrival.
        IF new.unique_row IS NOT NULL AND NOT (got.reason = 'joined' AND got.run = new.id) THEN
            PERFORM note_unique(new, got.reason = 'accepted' AND EXISTS (
                SELECT FROM queue q WHERE q.id = new.id AND q.created_at = now), got.reason, now);
        END IF;
        FOREACH due IN ARRAY got.dues LOOP
            -- a join may also give room to a run in another queue
            tasks := tasks || CASE got.reason WHEN 'joined' THEN any_lane(new.task)
                                              ELSE lane_name(new.task, coalesce(new.queue, '')) END;
            dues := dues || due;
        END LOOP;
        tasks := tasks || got.more;
        dues := dues || got.more_dues;
        IF got.replaced <> '{}' THEN
            touched := touched || got.replaced;
            FOR i IN 1 .. cardinality(got.replaced) LOOP
                d_tasks := d_tasks || new.task; d_keys := d_keys || got.replaced_keys[i];
                d_reasons := d_reasons || 'cancelled'::text; d_runs := d_runs || got.replaced[i];
            END LOOP;
        END IF;
        IF got.late IS NOT NULL THEN
            touched := touched || got.late;
            FOR i IN 1 .. cardinality(got.late) LOOP
                d_tasks := d_tasks || new.task; d_keys := d_keys || got.late_keys[i];
                d_reasons := d_reasons || 'expired'::text; d_runs := d_runs || got.late[i];
            END LOOP;
        END IF;
    END LOOP;
    INSERT INTO counted SELECT 'decided', n.task, 'accepted', count(*) FROM unnest(news) WITH ORDINALITY AS n
    WHERE reasons[n.ordinality] = 'accepted' GROUP BY n.task;
    -- Decisions are in the order of the batch: `count_decisions` remembers the last run of each reason. A run that has joined
    -- itself has an id that was put before, perhaps by this put, which was sent again: it is not counted.
    SELECT d_tasks || array_agg(n.task ORDER BY n.ordinality), d_keys || array_agg(n.key ORDER BY n.ordinality),
           d_reasons || array_agg(reasons[n.ordinality] ORDER BY n.ordinality),
           d_runs || array_agg(runs[n.ordinality] ORDER BY n.ordinality)
    INTO d_tasks, d_keys, d_reasons, d_runs
    FROM unnest(news) WITH ORDINALITY AS n
    WHERE reasons[n.ordinality] <> 'accepted' AND NOT (reasons[n.ordinality] = 'joined' AND runs[n.ordinality] = n.id);
END $$;
