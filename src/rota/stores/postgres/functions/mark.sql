-- twin: rota/stores/ledger/mark.py
-- mark: a person sets or clears marks of (task, key).

-- Set and clear marks, one after the other. An answer is false if the mark is already as the edit wants it. Runs whose last
-- need is met by a new mark may start, also if a later edit clears that mark.
-- Lock order: names (5), then by id the runs in the queue (6) that wait for one of the marks, then marks (7) in the order of the
-- edits. Whoever else writes one of these marks has first locked its name (settle) or the runs that wait for it (meet_needs).
-- Race: see lock_names.
CREATE OR REPLACE FUNCTION mark(
    me text, skew float8, seen float8, of_task text[], of_key text[], clears boolean[], succeededs float8[],
    finisheds float8[], failures_ integer[], holders_ text[], OUT now float8, OUT hinted text[], OUT answers boolean[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    edit record;
    known marks;
    names text[] := ARRAY(SELECT sign || e.task || ' ' || e.key
                          FROM unnest(of_task, of_key) AS e (task, key) CROSS JOIN unnest('{*,+}'::text[]) AS sign);
    met text[];
    tasks text[] := '{}';
    dues float8[] := '{}';
    got record;
BEGIN
    PERFORM lock_names(names, true);
    PERFORM FROM queue q WHERE q.id = ANY(ARRAY(SELECT w.run FROM waits w WHERE w.ended = ANY(names)))
    ORDER BY q.id FOR NO KEY UPDATE;
    now := now_of(skew, seen, true);
    answers := array_fill(true, ARRAY[cardinality(of_task)]); hinted := '{}';
    FOR edit IN SELECT * FROM unnest(of_task, of_key, clears, succeededs, finisheds, failures_, holders_) WITH ORDINALITY
                AS e (task, key, clear, succeeded_at, finished_at, failures, holder, place) LOOP
        SELECT * INTO known FROM marks m WHERE m.task = edit.task AND m.key = edit.key FOR UPDATE;
        IF (known.succeeded_at, known.finished_at, coalesce(known.failures, 0), known.holder)
            IS NOT DISTINCT FROM (edit.succeeded_at, edit.finished_at, edit.failures, edit.holder) THEN
            answers[edit.place] := false;
            CONTINUE;
        END IF;
        IF edit.clear THEN
            DELETE FROM marks m WHERE m.task = edit.task AND m.key = edit.key;
        ELSE
            INSERT INTO marks (task, key, succeeded_at, finished_at, failures, holder)
            VALUES (edit.task, edit.key, edit.succeeded_at, edit.finished_at, edit.failures, edit.holder)
            ON CONFLICT (task, key) DO UPDATE SET succeeded_at = excluded.succeeded_at,
                finished_at = excluded.finished_at, failures = excluded.failures, holder = excluded.holder;
            met := met_by(NULL, false, edit.finished_at IS NOT NULL, edit.task, edit.key, NULL)
                || CASE WHEN edit.succeeded_at IS NOT NULL THEN ARRAY['+' || edit.task || ' ' || edit.key] END;
            SELECT * INTO got FROM meet_needs(met, now);
            tasks := tasks || got.tasks; dues := dues || got.dues;
        END IF;
    END LOOP;
    IF tasks <> '{}' THEN
        hinted := to_hint(tasks, dues, now);
        PERFORM send_hints(me, hinted, NULL);
    END IF;
END $$;
