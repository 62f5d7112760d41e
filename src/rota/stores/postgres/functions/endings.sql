-- twin: rota/stores/ledger/holds.py
-- Runs that end before they run, and the counts of decisions.

-- Count decisions in the row of their name. Returns false if there is no such row.
CREATE OR REPLACE FUNCTION count_decision(
    of_task text, of_key text, why text, more bigint, new_run text, new_note text, requested_by text, now float8
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    known bigint;
BEGIN
    SELECT d.version INTO known FROM decisions d WHERE d.task = of_task AND d.key = of_key AND d.reason = why
    ORDER BY d.version DESC LIMIT 1 FOR UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE decisions d SET version = d.version + 1, count = d.count + more, last_at = now, run = new_run, note = new_note,
        by = requested_by
    WHERE d.task = of_task AND d.key = of_key AND d.reason = why AND d.version = known;
    RETURN true;
END $$;

-- Count decisions: one row per (task, key, reason), with the run and the note of the last decision.
-- Lock order: decisions (8), by task, key and reason. A verb calls this once, after it has waited for all other locks.
-- Race: another verb may add the first row of a name. Then decision_ids makes this verb wait, and it finds that row.
CREATE OR REPLACE FUNCTION count_decisions(
    tasks text[], keys text[], reasons text[], counts bigint[], runs text[], notes text[], requested_by text, now float8
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    new record;
BEGIN
    IF coalesce(cardinality(tasks), 0) = 0 THEN RETURN; END IF;
    INSERT INTO counted SELECT 'decided', d.task, d.reason, sum(coalesce(d.count, 1))
    FROM unnest(tasks, reasons, counts) AS d (task, reason, count) GROUP BY d.task, d.reason;
    FOR new IN
        SELECT d.task, coalesce(d.key, '') AS key, d.reason, sum(coalesce(d.count, 1)) AS count,
               (array_agg(d.run ORDER BY d.place DESC))[1] AS run, (array_agg(d.note ORDER BY d.place DESC))[1] AS note
        FROM unnest(tasks, keys, reasons, counts, runs, notes) WITH ORDINALITY
            AS d (task, key, reason, count, run, note, place)
        GROUP BY 1, 2, 3 ORDER BY d.task COLLATE "C", coalesce(d.key, '') COLLATE "C", d.reason COLLATE "C"
    LOOP
        CONTINUE WHEN count_decision(new.task, new.key, new.reason, new.count::bigint, new.run, new.note, requested_by, now);
        INSERT INTO decision_ids VALUES (new.task, new.key, new.reason) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            INSERT INTO decisions (task, key, reason, version, count, first_at, last_at, run, note, by)
            VALUES (new.task, new.key, new.reason, floor(now * {PER_SECOND})::bigint, new.count, now, now, new.run, new.note,
                    requested_by);
        ELSIF NOT count_decision(new.task, new.key, new.reason, new.count::bigint, new.run, new.note, requested_by, now) THEN
            RAISE EXCEPTION 'the decisions of % were forgotten meanwhile', new.task USING ERRCODE = 'serialization_failure';
        END IF;
    END LOOP;
END $$;

-- Put the callbacks of the runs `ended` for their final states, and return the lanes that they came into. Their ids derive from
-- the ids of these runs, so they are put once; they have no guards, so that none is refused.
-- Lock order: nobody else inserts these ids, so the insert does not wait for a row of queue.
CREATE OR REPLACE FUNCTION put_callbacks(ended text[], now float8) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    lanes text[];
    ids text[];
BEGIN
    IF NOT EXISTS (SELECT FROM callbacks c WHERE c.run = ANY(ended)) THEN RETURN '{}'; END IF;
    PERFORM know_queues(array_agg(c.task), array_agg(c.queue)) FROM callbacks c WHERE c.run = ANY(ended) AND c.queue <> '';
    WITH taken AS (
        DELETE FROM callbacks WHERE run = ANY(ended) RETURNING *
    ), news AS (
        INSERT INTO queue (id, task, body, queue, priority, created_at, due_at, lane_at)
        SELECT t.id, t.task, t.body, t.queue, t.priority, now, now, lane_place(t.task, t.queue, t.priority, now, now)
        FROM taken t CROSS JOIN LATERAL (SELECT f.state FROM finished f WHERE f.id = t.run OFFSET 0) AS f
        WHERE f.state = t.state ON CONFLICT DO NOTHING RETURNING id, task, queue
    )
    SELECT coalesce(array_agg(lane_name(n.task, n.queue)), '{}'), coalesce(array_agg(n.id::text), '{}') INTO lanes, ids FROM news n;
    -- A transaction of a caller may stay open for long: it records nothing before its commit.
    IF (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} AND coalesce(current_setting('rota.open', true), '') = '' THEN
        PERFORM record_events('', 'runs', NULL, ids, NULL, NULL, array_fill('accepted'::text, ARRAY[cardinality(ids)]), NULL, now);
    END IF;
    RETURN lanes;
END $$;

-- End the queued runs `ids` before they run, as cancelled with the reason `why`. Returns the ended runs and the arrivals for
-- `to_hint`. All runs are deleted before any run is unparked in their place: else one of `ids` would be unparked.
-- Lock order: the caller has locked the gates of their tasks.
CREATE OR REPLACE FUNCTION end_waiting(
    ids text[], why text, new_note text, now float8,
    OUT ended text[], OUT of_task text[], OUT of_key text[], OUT tasks text[], OUT dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    met text[];
    named text[];
    ready_tasks text[];
    ready_keys text[];
    room float8[];
    called text[];
BEGIN
    WITH gone AS (
        DELETE FROM queue WHERE id = ANY(ids) RETURNING *
    ), kept AS (
        INSERT INTO finished ({carried}, {waited}, fence, finished_at, cancel_requested, pause_requested, state, reason, note)
        SELECT {g.carried}, {g.waited}, g.fence, now, false, false, 'cancelled', why,
            CASE WHEN why = 'expired' THEN g.note ELSE new_note END
        FROM gone g
    ), waited AS (
        DELETE FROM waits WHERE ctid = ANY(ARRAY(SELECT w.ctid FROM gone g CROSS JOIN LATERAL (
            SELECT w.ctid FROM waits w WHERE w.ended = ANY(g.needs) AND w.run = g.id OFFSET 0) AS w WHERE g.needs IS NOT NULL))
    )
    SELECT array_agg(g.id::text ORDER BY g.seq), array_agg(g.task::text ORDER BY g.seq),
           array_agg(g.key::text ORDER BY g.seq), array_agg(g.id::text) FILTER (WHERE g.awaited),
           array_agg('*' || g.task || ' ' || coalesce(g.unique_key, g.key, '')) FILTER (WHERE g.writes_mark),
           array_agg(g.task::text ORDER BY g.seq) FILTER (WHERE g.hold = 0 AND g.due_at <= now),
           array_agg(g.key::text ORDER BY g.seq) FILTER (WHERE g.hold = 0 AND g.due_at <= now)
    INTO ended, of_task, of_key, met, named, ready_tasks, ready_keys FROM gone g;
    tasks := '{}'; dues := '{}';
    IF met IS NOT NULL OR named IS NOT NULL THEN
        SELECT r.tasks, r.dues INTO tasks, dues FROM meet_needs(met || named, now) r;
    END IF;
    IF met IS NOT NULL THEN
        called := put_callbacks(met, now);
        tasks := tasks || called; dues := dues || array_fill(now, ARRAY[cardinality(called)]);
    END IF;
    IF ready_tasks IS NOT NULL AND EXISTS (SELECT FROM specs s WHERE s.gated AND s.name = ANY(ready_tasks)) THEN
        FOR i IN 1 .. cardinality(ready_tasks) LOOP
            room := freed(ready_tasks[i], ready_keys[i], false, now);
            tasks := tasks || array_fill(any_lane(ready_tasks[i]), ARRAY[cardinality(room)]);
            dues := dues || room;
        END LOOP;
    END IF;
END $$;

-- End those of the queued runs `late` that have expired. A run that another verb has locked is skipped (SKIP LOCKED): a later
-- claim or sweep ends it.
CREATE OR REPLACE FUNCTION expire(late text[], now float8, OUT touched text[], OUT tasks text[], OUT dues float8[])
LANGUAGE plpgsql AS $$
DECLARE
    gone record;
    got record;
BEGIN
    SELECT * INTO gone FROM end_waiting(ARRAY(
        SELECT q.id FROM queue q WHERE q.id = ANY(late) AND q.hold + 0 <> 3 AND q.expires_at + 0 <= now
        ORDER BY q.id FOR UPDATE SKIP LOCKED), 'expired', NULL, now);
    touched := coalesce(gone.ended, '{}'); tasks := gone.tasks; dues := gone.dues;
    SELECT * INTO got FROM count_in_fan(touched, now);
    tasks := tasks || got.tasks; dues := dues || got.dues;
    PERFORM count_decisions(gone.of_task, gone.of_key, array_fill('expired'::text, ARRAY[cardinality(touched)]), NULL,
                   touched, NULL, NULL, now);
END $$;
