-- twin: rota/stores/ledger/edit.py rota/domain/edits.py
-- edit: people change the due time, the expiry, the priority or the arguments of queued runs.

-- Change the run `which`, if it is queued and has the body that the edit replaces. A run with other arguments starts afresh.
-- `dues`: the times at which runs of its task become due. Lock order: the caller has locked the gate of its task and its row.
CREATE OR REPLACE FUNCTION edit_run(
    which text, new_due float8, new_expiry float8, new_priority smallint, new_body bytea, old_body bytea,
    new_share text, now float8,
    OUT answer text, OUT of_task text, OUT of_key text, OUT dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    due float8;
    level smallint;
    expiry float8;
    new_hold smallint;
    rewritten boolean;
BEGIN
    answer := 'stale'; dues := '{}';
    SELECT * INTO q FROM queue WHERE id = which AND hold <> 3 FOR UPDATE NOWAIT;
    IF NOT FOUND OR q.expires_at <= now OR (new_body IS NOT NULL AND q.body <> new_body AND q.body <> old_body) THEN
        RETURN;
    END IF;
    due := coalesce(after(new_due, 0), q.due_at);
    level := coalesce(new_priority, q.priority);
    expiry := coalesce(after(new_expiry, 0), moved_expiry(q.expires_at, q.due_at, due));
    rewritten := coalesce(new_body <> q.body, false);
    IF due = q.due_at AND level = q.priority AND expiry IS NOT DISTINCT FROM q.expires_at AND NOT rewritten
       AND (new_share IS NULL OR q.share IS NOT DISTINCT FROM new_share) THEN
        answer := 'unchanged';
        RETURN;
    END IF;
    answer := 'changed'; of_task := q.task; of_key := q.key;
    -- A parked run that moved is unparked: the next claim checks the limit again, at the run's new place in line.
    new_hold := CASE WHEN q.hold = 1 AND (due <> q.due_at OR level <> q.priority) THEN 0 ELSE q.hold END;
    UPDATE queue SET due_at = due, lane_at = lane_place(q.task, q.queue, level, due, now), expires_at = noted_expiry(expiry, now),
        priority = level, hold = new_hold, share = coalesce(new_share, q.share)
    WHERE id = which;
    IF rewritten THEN
        UPDATE queue SET body = new_body, failures = 0, losses = 0, saved = NULL, progress = NULL, error = NULL,
            attempts = replaced_attempts(q, now)
        WHERE id = which;
    END IF;
    -- Race: a claim that runs at the same time skips the run, because this edit has locked it. So a worker is woken also if the
    -- run was due before.
    IF new_hold < 2 AND (due < q.due_at OR new_hold <> q.hold OR (new_hold = 0 AND due <= now)) THEN
        dues := dues || due;
    END IF;
    IF (due > q.due_at OR level < q.priority) AND q.hold = 0 AND q.due_at <= now THEN
        dues := dues || freed(q.task, q.key, false, now);
    END IF;
END $$;

-- Lock order: specs (3) by name, queue (6) by id.
CREATE OR REPLACE FUNCTION edit(
    me text, skew float8, seen float8, ids text[], new_dues float8[], expiries float8[], priorities smallint[],
    bodies bytea[], replaced bytea[], shares text[], new_note text, requested_by text,
    OUT now float8, OUT hinted text[], OUT touched text[], OUT answers text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    got record;
    tasks text[] := '{}'; dues float8[] := '{}';
    d_tasks text[] := '{}'; d_keys text[] := '{}';
BEGIN
    PERFORM lock_gates(ARRAY(SELECT DISTINCT q.task::text FROM queue q WHERE q.id = ANY(ids)));
    PERFORM FROM queue q WHERE q.id = ANY(ids) ORDER BY q.id FOR UPDATE;
    now := now_of(skew, seen, true);
    answers := '{}'; touched := '{}';
    FOR i IN 1..cardinality(ids) LOOP
        SELECT * INTO got FROM edit_run(ids[i], new_dues[i], expiries[i], priorities[i], bodies[i], replaced[i], shares[i], now);
        answers := answers || got.answer;
        IF got.answer = 'changed' THEN
            touched := touched || ids[i];
            d_tasks := d_tasks || got.of_task; d_keys := d_keys || got.of_key;
            tasks := tasks || array_fill(any_lane(got.of_task), ARRAY[cardinality(got.dues)]); dues := dues || got.dues;
        END IF;
    END LOOP;
    PERFORM count_decisions(d_tasks, d_keys, array_fill('edited'::text, ARRAY[cardinality(d_tasks)]),
                   array_fill(1::bigint, ARRAY[cardinality(d_tasks)]), touched,
                   array_fill(new_note, ARRAY[cardinality(d_tasks)]), requested_by, now);
    hinted := to_hint(tasks, dues, now);
    IF (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} THEN
        PERFORM record_events(me, 'runs', array_fill('edited'::text, ARRAY[cardinality(touched)]), touched, NULL, NULL,
                              array_fill('edited'::text, ARRAY[cardinality(touched)]), NULL, now);
    END IF;
    PERFORM send_hints(me, hinted, touched);
END $$;
