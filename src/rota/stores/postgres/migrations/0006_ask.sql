-- ask, mark and declare: wishes of people and specs of code.

-- An idle worker for each run that the task has waiting, up to 100: what it may start has changed.
CREATE FUNCTION announce(which text, now float8) RETURNS float8[] LANGUAGE sql AS $$
    SELECT ARRAY(SELECT now FROM queue q WHERE q.hold < 2 AND q.task = which LIMIT 100)
$$;

-- What a wish makes of one run; how many it changed. The caller has locked its gate.
CREATE FUNCTION ask_run(
    wish text, which text, said text, now float8,
    OUT changed integer, OUT decided boolean, OUT of_task text, OUT of_key text, OUT tasks text[], OUT dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    q queue;
    gone record;
BEGIN
    changed := 0; decided := false; tasks := '{}'; dues := '{}';
    LOOP
        SELECT * INTO l FROM leases WHERE id = which FOR UPDATE;
        EXIT WHEN FOUND;
        SELECT * INTO q FROM queue WHERE id = which FOR UPDATE;
        EXIT WHEN FOUND OR NOT EXISTS (SELECT FROM leases WHERE id = which UNION ALL SELECT FROM queue WHERE id = which);
    END LOOP;
    IF l.id IS NOT NULL THEN
        of_task := l.task; of_key := l.key;
        IF wish = 'cancel' THEN
            changed := 1;  -- also where it was told already
            decided := NOT l.cancel_asked OR l.pause_asked OR l.note IS DISTINCT FROM said;
            UPDATE leases SET cancel_asked = true, pause_asked = false, note = said WHERE decided AND id = which;
        ELSIF wish = 'pause' THEN
            decided := NOT l.cancel_asked AND (NOT l.pause_asked OR l.note IS DISTINCT FROM said);
            UPDATE leases SET pause_asked = true, note = said WHERE decided AND id = which;
        ELSIF wish = 'resume' THEN
            decided := l.pause_asked;
            UPDATE leases SET pause_asked = false, note = said WHERE decided AND id = which;
        END IF;
        IF decided THEN changed := 1; END IF;
    ELSIF q.id IS NOT NULL THEN
        of_task := q.task; of_key := q.key;
        IF wish IN ('cancel', 'drop') THEN
            SELECT * INTO gone FROM end_waiting(ARRAY[which], CASE wish WHEN 'drop' THEN 'dropped' ELSE 'cancelled' END,
                                                said, now);
            tasks := gone.tasks; dues := gone.dues;
            decided := true;
        ELSIF wish = 'pause' AND q.hold <> 3 THEN
            UPDATE queue SET hold = 3, note = said WHERE id = which;
            IF q.hold = 0 AND q.due_at <= now THEN
                dues := freed(q.task, q.key, false, now);
                tasks := array_fill(q.task::text, ARRAY[cardinality(dues)]);
            END IF;
            decided := true;
        ELSIF wish = 'resume' AND q.hold = 3 THEN
            UPDATE queue SET hold = CASE WHEN needs IS NULL THEN 0 ELSE 2 END, note = said WHERE id = which;
            tasks := ARRAY[q.task::text]; dues := ARRAY[q.due_at];
            decided := true;
        END IF;
        changed := decided::integer;
    END IF;
END $$;

-- Cancel and drop end what a task has waiting, 10,000 at a time; pause and resume hold the task.
CREATE FUNCTION ask_task(
    wish text, which text, said text, now float8, OUT changed integer, OUT tasks text[], OUT dues float8[],
    OUT touched text[]
) LANGUAGE plpgsql AS $$
DECLARE
    waiting text[];
    gone record;
BEGIN
    changed := 0; tasks := '{}'; dues := '{}'; touched := '{}';
    IF wish IN ('cancel', 'drop') THEN
        waiting := ARRAY((SELECT q.id FROM queue q WHERE q.task = which AND q.hold = 0 LIMIT 10000)
            UNION ALL (SELECT q.id FROM queue q WHERE q.task = which AND q.hold = 1 LIMIT 10000)
            UNION ALL (SELECT q.id FROM queue q WHERE q.task = which AND q.hold > 1 LIMIT 10000));
        waiting := ARRAY(SELECT q.id FROM queue q WHERE q.id = ANY(waiting[1:10000]) ORDER BY q.id FOR UPDATE);
        SELECT * INTO gone FROM end_waiting(waiting, 'dropped', said, now);
        changed := coalesce(cardinality(gone.ended), 0);
        touched := gone.ended; tasks := gone.tasks; dues := gone.dues;
    ELSE
        INSERT INTO specs (name, spec, enabled, gated)
        VALUES (which, json_build_object('name', which)::text, true, false) ON CONFLICT DO NOTHING;
        UPDATE specs SET paused = (wish = 'pause') WHERE name = which AND paused <> (wish = 'pause');
        changed := FOUND::integer;
        IF FOUND AND wish = 'resume' THEN
            dues := announce(which, now);
            tasks := array_fill(which, ARRAY[cardinality(dues)]);
        END IF;
    END IF;
END $$;

CREATE FUNCTION ask_schedule(
    wish text, which text, said text, now float8, OUT changed integer, OUT of_task text, OUT of_key text, OUT due float8
) LANGUAGE plpgsql AS $$
BEGIN
    IF wish IN ('cancel', 'drop') THEN
        DELETE FROM schedules s WHERE s.id = which RETURNING s.task, s.key INTO of_task, of_key;
    ELSIF wish = 'pause' THEN
        UPDATE schedules s SET paused = true, note = said, version = s.version + 1, look_at = NULL
        WHERE s.id = which AND NOT s.paused RETURNING s.task, s.key INTO of_task, of_key;
    ELSE
        UPDATE schedules s SET paused = false, note = said, version = s.version + 1, since = now, look_at = s.fires_at
        WHERE s.id = which AND s.paused RETURNING s.task, s.key, s.fires_at INTO of_task, of_key, due;
    END IF;
    changed := FOUND::integer;
END $$;

CREATE FUNCTION ask(
    me text, skew float8, seen float8, wish text, subjects text[], said text, asker text, about text,
    OUT now float8, OUT hinted text[], OUT touched text[], OUT answers integer[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    subject text;
    got record;
    why text := CASE wish WHEN 'cancel' THEN 'cancelled' WHEN 'drop' THEN 'dropped' WHEN 'pause' THEN 'paused'
                ELSE 'resumed' END;
    tasks text[] := '{}'; dues float8[] := '{}';
    d_tasks text[] := '{}'; d_keys text[] := '{}'; d_counts bigint[] := '{}'; d_runs text[] := '{}';
BEGIN
    IF about = 'runs' THEN
        PERFORM lock_gates(ARRAY(SELECT l.task::text FROM leases l WHERE l.id = ANY(subjects)
                                 UNION SELECT q.task::text FROM queue q WHERE q.id = ANY(subjects)));
        PERFORM FROM leases l WHERE l.id = ANY(subjects) ORDER BY l.id FOR UPDATE;
        PERFORM FROM queue q WHERE q.id = ANY(subjects) ORDER BY q.id FOR UPDATE;
    ELSIF about = 'tasks' THEN
        PERFORM FROM specs s WHERE s.name = ANY(subjects) ORDER BY s.name FOR UPDATE;
    ELSE
        PERFORM FROM schedules s WHERE s.id = ANY(subjects) ORDER BY s.id FOR UPDATE;
    END IF;
    now := now_of(skew, seen, true);
    answers := '{}'; touched := '{}';
    FOREACH subject IN ARRAY subjects LOOP
        IF about = 'runs' THEN
            SELECT * INTO got FROM ask_run(wish, subject, said, now);
            IF got.decided THEN
                touched := touched || subject;
                d_tasks := d_tasks || got.of_task; d_keys := d_keys || got.of_key; d_counts := d_counts || 1::bigint;
                d_runs := d_runs || subject;
            END IF;
            tasks := tasks || got.tasks; dues := dues || got.dues;
        ELSIF about = 'tasks' THEN
            SELECT * INTO got FROM ask_task(wish, subject, said, now);
            IF got.changed > 0 THEN
                d_tasks := d_tasks || subject; d_keys := d_keys || NULL::text; d_runs := d_runs || NULL::text;
                d_counts := d_counts || got.changed::bigint;
            END IF;
            touched := touched || got.touched; tasks := tasks || got.tasks; dues := dues || got.dues;
        ELSE
            SELECT * INTO got FROM ask_schedule(wish, subject, said, now);
            IF got.changed > 0 THEN
                d_tasks := d_tasks || got.of_task; d_keys := d_keys || got.of_key; d_runs := d_runs || NULL::text;
                d_counts := d_counts || 1::bigint;
            END IF;
            IF got.due IS NOT NULL THEN
                tasks := tasks || NULL::text; dues := dues || got.due;
            END IF;
        END IF;
        answers := answers || got.changed;
    END LOOP;
    PERFORM decide(d_tasks, d_keys, array_fill(why, ARRAY[cardinality(d_tasks)]), d_counts, d_runs, said, asker, now);
    hinted := hint(tasks, dues, now);
    PERFORM tell(me, hinted, touched);
END $$;

-- Set and clear marks; false where it was so already. Who waits for what is done thereby may start.
CREATE FUNCTION mark(
    me text, skew float8, seen float8, of_task text[], of_key text[], clears boolean[], succeededs float8[],
    finisheds float8[], failures_ integer[], OUT now float8, OUT hinted text[], OUT answers boolean[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    edit record;
    known marks;
    met text[] := '{}';
    got record;
BEGIN
    PERFORM lock_names(ARRAY(SELECT '*' || e.task || ' ' || e.key FROM unnest(of_task, of_key) AS e (task, key)), false);
    now := now_of(skew, seen, true);
    answers := '{}'; hinted := '{}';
    FOR edit IN SELECT * FROM unnest(of_task, of_key, clears, succeededs, finisheds, failures_) WITH ORDINALITY
                AS e (task, key, clear, succeeded_at, finished_at, failures, place) ORDER BY e.place LOOP
        SELECT * INTO known FROM marks m WHERE m.task = edit.task AND m.key = edit.key FOR UPDATE;
        IF (known.succeeded_at, known.finished_at, coalesce(known.failures, 0))
            IS NOT DISTINCT FROM (edit.succeeded_at, edit.finished_at, edit.failures) THEN
            answers := answers || false;
            CONTINUE;
        END IF;
        answers := answers || true;
        IF edit.clear THEN
            DELETE FROM marks m WHERE m.task = edit.task AND m.key = edit.key;
        ELSE
            INSERT INTO marks (task, key, succeeded_at, finished_at, failures)
            VALUES (edit.task, edit.key, edit.succeeded_at, edit.finished_at, edit.failures)
            ON CONFLICT (task, key) DO UPDATE SET succeeded_at = excluded.succeeded_at,
                finished_at = excluded.finished_at, failures = excluded.failures;
            met := met || met_by(NULL, false, edit.finished_at IS NOT NULL, edit.task, edit.key, NULL)
                || CASE WHEN edit.succeeded_at IS NOT NULL THEN ARRAY['+' || edit.task || ' ' || edit.key] END;
        END IF;
    END LOOP;
    IF met <> '{}' THEN
        SELECT * INTO got FROM release(met, now);
        hinted := hint(got.tasks, got.dues, now);
        PERFORM tell(me, hinted, NULL);
    END IF;
END $$;

-- Publish a task's spec. A pause outlives it; changed limits let everything go that the old ones had parked.
CREATE FUNCTION declare_task(
    new specs, now float8, OUT answer text, OUT dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    known specs;
BEGIN
    dues := '{}';
    INSERT INTO specs SELECT new.* ON CONFLICT DO NOTHING;
    IF FOUND THEN
        answer := 'added';
        UPDATE leases SET gated = true WHERE new.gated AND task = new.name AND NOT gated;
        RETURN;
    END IF;
    SELECT * INTO known FROM specs WHERE name = new.name FOR UPDATE;
    answer := 'unchanged';
    IF known.spec = new.spec THEN RETURN; END IF;
    answer := 'changed';
    UPDATE specs SET spec = new.spec, enabled = new.enabled, gated = new.gated, total = new.total,
        per_key = new.per_key, rate_interval = new.rate_interval, rate_burst = new.rate_burst,
        rate_per_key = new.rate_per_key, mark_memory = new.mark_memory
    WHERE name = new.name;
    UPDATE leases SET gated = true WHERE new.gated AND task = new.name AND NOT gated;
    IF (new.rate_interval, new.rate_burst, new.rate_per_key)
        IS DISTINCT FROM (known.rate_interval, known.rate_burst, known.rate_per_key) THEN
        DELETE FROM rates WHERE task = new.name;  -- tokens of the old rate would hold up the new one, perhaps for days
    ELSIF (new.total, new.per_key) IS NOT DISTINCT FROM (known.total, known.per_key) THEN
        RETURN;
    END IF;
    UPDATE queue SET hold = 0 WHERE hold = 1 AND task = new.name;
    dues := announce(new.name, now);
END $$;

-- Declare a schedule: the first tick is the declarer's, as the store reads no triggers. One that fires at the same times
-- keeps its next tick. What fell before `since` is not owed. One that has a version comes from another store, and stands
-- where it stood there.
CREATE FUNCTION declare_schedule(new schedules, now float8, OUT answer text, OUT due float8) LANGUAGE plpgsql AS $$
DECLARE
    known schedules;
BEGIN
    IF new.version = 0 THEN
        new.version := 1; new.since := now; new.paused := false; new.note := NULL; new.recent := '{}'; new.last_at := NULL;
    END IF;
    IF NOT new.paused THEN new.look_at := new.fires_at; END IF;
    INSERT INTO schedules SELECT new.* ON CONFLICT DO NOTHING;
    IF FOUND THEN
        answer := 'added'; due := new.look_at;
        RETURN;
    END IF;
    SELECT * INTO known FROM schedules WHERE id = new.id FOR UPDATE;
    IF known.owner <> new.owner THEN
        answer := 'taken';
    ELSIF known.times = new.times AND known.declared = new.declared THEN
        answer := 'unchanged';
    ELSIF known.times = new.times THEN
        answer := 'changed';
        UPDATE schedules SET task = new.task, key = new.key, declared = new.declared, version = known.version + 1,
            look_at = CASE WHEN NOT paused THEN fires_at END
        WHERE id = new.id RETURNING look_at INTO due;
    ELSE
        answer := 'changed';
        UPDATE schedules SET task = new.task, key = new.key, declared = new.declared, times = new.times,
            anchor = new.anchor, next_at = new.next_at, fires_at = new.fires_at, version = known.version + 1, since = now,
            look_at = CASE WHEN NOT paused THEN new.fires_at END
        WHERE id = new.id RETURNING look_at INTO due;
    END IF;
END $$;

-- Tasks and schedules in order; `declared` is NULL for a task, `spec` for a schedule.
CREATE FUNCTION declare_all(
    me text, skew float8, seen float8, names text[], specs_ text[], enableds boolean[], gateds boolean[],
    totals integer[], per_keys integer[], intervals float8[], bursts integer[], by_key boolean[], memories float8[],
    of_task text[], of_key text[], owners text[], declareds text[], times_ text[], anchors float8[], nexts float8[],
    fires float8[], versions integer[], sinces float8[], pauseds boolean[], notes text[], recents text[],
    OUT now float8, OUT hinted text[], OUT answers text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    item record;
    got record;
    tasks text[] := '{}'; dues float8[] := '{}';
BEGIN
    PERFORM FROM specs s WHERE s.name = ANY(names) ORDER BY s.name FOR UPDATE;
    PERFORM FROM schedules s WHERE s.id = ANY(names) ORDER BY s.id FOR UPDATE;
    now := now_of(skew, seen, true);
    answers := '{}';
    FOR item IN SELECT * FROM unnest(names, specs_, enableds, gateds, totals, per_keys, intervals, bursts, by_key,
            memories, of_task, of_key, owners, declareds, times_, anchors, nexts, fires, versions, sinces, pauseds, notes,
            recents) WITH ORDINALITY
            AS i (name, spec, enabled, gated, total, per_key, pace, burst, by_key, memory, task, key, owner, declared,
                  times, anchor, next_at, fires_at, version, since, paused, note, recent, place) ORDER BY i.place LOOP
        IF item.spec IS NOT NULL THEN
            SELECT * INTO got FROM declare_task(ROW(item.name, item.spec, item.enabled, false, item.gated, item.total,
                item.per_key, item.pace, item.burst, item.by_key, item.memory)::specs, now);
            IF got.dues <> '{}' THEN
                tasks := tasks || array_fill(item.name, ARRAY[cardinality(got.dues)]); dues := dues || got.dues;
            END IF;
        ELSE
            SELECT * INTO got FROM declare_schedule(ROW(item.name, item.task, item.key, item.owner, item.declared,
                item.times, item.anchor, item.next_at, item.fires_at, item.version, item.since, item.paused, item.note,
                ARRAY(SELECT firing::text FROM json_array_elements(item.recent::json) firing),
                (item.recent::json -> -1 ->> 0)::float8, NULL)::schedules, now);
            IF got.due IS NOT NULL THEN tasks := tasks || NULL::text; dues := dues || got.due; END IF;
        END IF;
        answers := answers || got.answer;
    END LOOP;
    hinted := hint(tasks, dues, now);
    PERFORM tell(me, hinted, NULL);
END $$;
