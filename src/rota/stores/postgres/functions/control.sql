-- twin: rota/stores/ledger/control.py
-- control: commands of people to runs, tasks and schedules.

-- Apply a command to the run `which`. `changed`: how many runs the command changed. `decided`: a decision is counted.
-- Lock order: the caller has locked the gate of the task, and mostly the run. A run that has moved since then is locked NOWAIT:
-- leases (4) come before queue (6), and the caller holds rows of both.
-- Race: a run may move between queue and leases between two statements. So a run is gone only if a single statement finds it
-- in neither table.
CREATE OR REPLACE FUNCTION control_run(
    command text, which text, new_note text, now float8,
    OUT changed integer, OUT decided boolean, OUT of_task text, OUT of_key text, OUT tasks text[], OUT dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    q queue;
    gone record;
BEGIN
    changed := 0; decided := false; tasks := '{}'; dues := '{}';
    LOOP
        SELECT * INTO l FROM leases WHERE id = which FOR UPDATE NOWAIT;
        EXIT WHEN FOUND;
        SELECT * INTO q FROM queue WHERE id = which FOR UPDATE NOWAIT;
        EXIT WHEN FOUND OR NOT EXISTS (SELECT FROM leases WHERE id = which UNION ALL SELECT FROM queue WHERE id = which);
    END LOOP;
    IF l.id IS NOT NULL THEN
        of_task := l.task; of_key := l.key;
        IF command = 'cancel' THEN
            changed := 1;  -- also if the cancel was requested before
            decided := NOT l.cancel_requested OR l.pause_requested OR l.note IS DISTINCT FROM new_note;
            UPDATE leases SET cancel_requested = true, pause_requested = false, note = new_note WHERE decided AND id = which;
        ELSIF command = 'pause' THEN
            decided := NOT l.cancel_requested AND (NOT l.pause_requested OR l.note IS DISTINCT FROM new_note);
            UPDATE leases SET pause_requested = true, note = new_note WHERE decided AND id = which;
        ELSIF command = 'resume' THEN
            decided := l.pause_requested;
            UPDATE leases SET pause_requested = false, note = new_note WHERE decided AND id = which;
        END IF;
        IF decided THEN changed := 1; END IF;
    ELSIF q.id IS NOT NULL THEN
        of_task := q.task; of_key := q.key;
        IF command IN ('cancel', 'drop') THEN
            SELECT * INTO gone FROM end_waiting(ARRAY[which], CASE command WHEN 'drop' THEN 'dropped' ELSE 'cancelled' END,
                                                new_note, now);
            tasks := gone.tasks; dues := gone.dues;
            decided := true;
        ELSIF command = 'pause' AND q.hold <> 3 THEN
            UPDATE queue SET hold = 3, note = new_note WHERE id = which;
            IF q.hold = 0 AND q.due_at <= now THEN
                dues := freed(q.task, q.key, false, now);
                tasks := array_fill(any_lane(q.task), ARRAY[cardinality(dues)]);
            END IF;
            decided := true;
        ELSIF command = 'resume' AND q.hold = 3 THEN
            UPDATE queue SET hold = CASE WHEN needs IS NULL THEN 0 ELSE 2 END, note = new_note,
                lane_at = lane_place(task, queue, priority, due_at, now), expires_at = noted_expiry(expires_at, now)
            WHERE id = which;
            tasks := ARRAY[lane_name(q.task, q.queue)]; dues := ARRAY[q.due_at];
            decided := true;
        END IF;
        changed := decided::integer;
    END IF;
END $$;

-- Forget an ended run. A put of the run that is sent again within ID_MEMORY must still find it.
CREATE OR REPLACE FUNCTION delete_run(
    which text, now float8,
    OUT changed integer, OUT decided boolean, OUT of_task text, OUT of_key text, OUT tasks text[], OUT dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    gone finished;
BEGIN
    tasks := '{}'; dues := '{}';
    DELETE FROM finished f WHERE f.id = which AND f.finished_at <= now - {ID_MEMORY} RETURNING * INTO gone;
    decided := FOUND; changed := FOUND::integer; of_task := gone.task; of_key := gone.key;
    IF decided THEN
        DELETE FROM grouped g WHERE g.run = which;
        UPDATE ids SET state = gone.state, ended_at = gone.finished_at WHERE id = which;
    END IF;
END $$;

-- Whether the pause of a task is in force; a pause may end by itself.
CREATE OR REPLACE FUNCTION is_paused(which text, now float8) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM specs s WHERE s.name = which AND s.paused)
       AND NOT EXISTS (SELECT FROM pauses p WHERE p.task = which AND p.until <= now)
$$;

-- Apply a command to a task. Cancel and drop end its queued runs, at most {DROPPED_AT_ONCE} at a time; pause and resume change
-- the flag `paused` of its spec, and the row of a pause that ends by itself. Lock order: queue (6), by id, with the runs that wait for the ended runs.
CREATE OR REPLACE FUNCTION control_task(
    command text, which text, new_note text, new_until float8, now float8, OUT changed integer, OUT tasks text[],
    OUT dues float8[], OUT touched text[]
) LANGUAGE plpgsql AS $$
DECLARE
    waiting text[];
    gone record;
    known boolean := is_paused(which, now);
BEGIN
    changed := 0; tasks := '{}'; dues := '{}'; touched := '{}';
    IF command IN ('cancel', 'drop') THEN
        waiting := ARRAY((SELECT q.id FROM queue q WHERE q.task = which AND q.hold = 0 LIMIT {DROPPED_AT_ONCE})
            UNION ALL (SELECT q.id FROM queue q WHERE q.task = which AND q.hold = 1 LIMIT {DROPPED_AT_ONCE})
            UNION ALL (SELECT q.id FROM queue q WHERE q.task = which AND q.hold > 1 LIMIT {DROPPED_AT_ONCE}));
        waiting := waiting[1:{DROPPED_AT_ONCE}];
        PERFORM FROM queue q WHERE q.id = ANY(waiting || behind_of(waiting)) ORDER BY q.id FOR UPDATE;
        waiting := ARRAY(SELECT q.id FROM queue q WHERE q.id = ANY(waiting) ORDER BY q.id FOR UPDATE);
        SELECT * INTO gone FROM end_waiting(waiting, 'dropped', new_note, now);
        changed := coalesce(cardinality(gone.ended), 0);
        touched := gone.ended; tasks := gone.tasks; dues := gone.dues;
    ELSE
        IF known = (command = 'pause') AND (command = 'resume'
            OR new_until IS NOT DISTINCT FROM (SELECT p.until FROM pauses p WHERE p.task = which)) THEN RETURN; END IF;
        IF command = 'pause' AND new_until <= now THEN RETURN; END IF;
        UPDATE specs SET paused = (command = 'pause') WHERE name = which AND paused <> (command = 'pause');
        DELETE FROM pauses p WHERE p.task = which;
        INSERT INTO pauses SELECT which, new_until WHERE command = 'pause' AND new_until IS NOT NULL;
        changed := 1;
        IF command = 'resume' THEN
            dues := announce(which, now);
            tasks := array_fill(any_lane(which), ARRAY[cardinality(dues)]);
        END IF;
    END IF;
END $$;

-- Pause or resume a key of a task; `which` is the name of the task, a space and the key. A claim parks the due runs of a paused
-- key. Lock order: the caller has locked the gate of the task, so that this may change its parked runs.
CREATE OR REPLACE FUNCTION control_key(
    command text, which text, now float8, OUT changed integer, OUT of_task text, OUT of_key text, OUT dues float8[]
) LANGUAGE plpgsql AS $$
BEGIN
    dues := '{}'; of_task := split_part(which, ' ', 1); of_key := substr(which, strpos(which, ' ') + 1);
    IF command = 'pause' THEN
        UPDATE specs s SET paused_keys = s.paused_keys || of_key, gated = true
        WHERE s.name = of_task AND of_key <> ALL(s.paused_keys) AND cardinality(s.paused_keys) < {PAUSED_KEYS};
    ELSIF command = 'resume' THEN
        UPDATE specs s SET paused_keys = array_remove(s.paused_keys, of_key),
            gated = s.paused_keys <> ARRAY[of_key] OR s.total IS NOT NULL OR s.per_key IS NOT NULL
                OR s.rate_interval IS NOT NULL OR s.limits <> '{}' OR s.weights IS NOT NULL
        WHERE s.name = of_task AND of_key = ANY(s.paused_keys);
    ELSE
        changed := 0;
        RETURN;
    END IF;
    changed := FOUND::integer;
    IF FOUND AND command = 'resume' THEN
        UPDATE queue SET hold = 0, lane_at = lane_place(task, queue, priority, due_at, now) WHERE hold = 1 AND task = of_task;
        dues := announce(of_task, now);
    END IF;
END $$;

-- Apply a command to a schedule. `due`: when a worker should look at the resumed schedule.
CREATE OR REPLACE FUNCTION control_schedule(
    command text, which text, new_note text, now float8, OUT changed integer, OUT of_task text, OUT of_key text, OUT due float8
) LANGUAGE plpgsql AS $$
BEGIN
    IF command IN ('cancel', 'drop') THEN
        DELETE FROM schedules s WHERE s.ctid = schedule_place(which) RETURNING s.task, s.key INTO of_task, of_key;
        IF FOUND THEN DELETE FROM schedule_ids WHERE id = which; END IF;
    ELSIF command = 'pause' THEN
        UPDATE schedules s SET change = s.change + 1, paused = true, note = new_note, version = s.version + 1, look_at = NULL
        WHERE s.ctid = schedule_place(which) AND NOT s.paused RETURNING s.task, s.key INTO of_task, of_key;
    ELSE
        UPDATE schedules s SET change = s.change + 1, paused = false, note = new_note, version = s.version + 1, since = now,
            look_at = CASE WHEN s.fires_at IS NOT NULL THEN greatest(s.fires_at, now) END
        WHERE s.ctid = schedule_place(which) AND s.paused RETURNING s.task, s.key, s.fires_at INTO of_task, of_key, due;
    END IF;
    changed := (of_task IS NOT NULL)::integer;
END $$;

-- Apply a command to each of `subjects`, which are runs, tasks or schedules (`about`). An answer is the number of changes.
-- Lock order: specs (3) by name, leases (4) by id, queue (6) by id; or schedules (2) by id; or specs (3) by name, queue (6).
CREATE OR REPLACE FUNCTION control(
    me text, skew float8, seen float8, command text, subjects text[], new_note text, requested_by text, about text,
    new_until float8 DEFAULT NULL,
    OUT now float8, OUT hinted text[], OUT touched text[], OUT answers integer[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    subject text;
    named text[];
    got record;
    why text := CASE command WHEN 'cancel' THEN 'cancelled' WHEN 'drop' THEN 'dropped' WHEN 'pause' THEN 'paused'
                WHEN 'delete' THEN 'deleted' ELSE 'resumed' END;
    tasks text[] := '{}'; dues float8[] := '{}';
    d_tasks text[] := '{}'; d_keys text[] := '{}'; d_counts bigint[] := '{}'; d_runs text[] := '{}';
BEGIN
    IF command = 'delete' THEN
        PERFORM FROM finished f WHERE about = 'runs' AND f.id = ANY(subjects) ORDER BY f.id FOR UPDATE;
    ELSIF about = 'runs' THEN
        PERFORM lock_gates(ARRAY(SELECT l.task::text FROM leases l WHERE l.id = ANY(subjects)
                                 UNION SELECT q.task::text FROM queue q WHERE q.id = ANY(subjects)));
        PERFORM FROM leases l WHERE l.id = ANY(subjects) ORDER BY l.id FOR UPDATE;
        PERFORM FROM queue q WHERE q.id = ANY(subjects || behind_of(subjects)) ORDER BY q.id FOR UPDATE;
    ELSIF about IN ('tasks', 'keys') THEN
        named := ARRAY(SELECT CASE about WHEN 'keys' THEN split_part(s, ' ', 1) ELSE s END FROM unnest(subjects) AS s);
        IF command IN ('pause', 'resume') THEN  -- also a task that no app has declared
            INSERT INTO specs (name, spec, enabled, gated)
            SELECT DISTINCT ON (s.name COLLATE "C") s.name, json_build_object('name', s.name)::text, true, false
            FROM unnest(named) AS s (name) ORDER BY s.name COLLATE "C" ON CONFLICT DO NOTHING;
        END IF;
        PERFORM FROM specs s WHERE s.name = ANY(named) ORDER BY s.name FOR UPDATE;
    ELSE
        PERFORM lock_schedules(subjects);
    END IF;
    now := now_of(skew, seen, true);
    answers := '{}'; touched := '{}';
    FOREACH subject IN ARRAY subjects LOOP
        IF command = 'delete' AND about <> 'runs' THEN
            answers := answers || 0;
            CONTINUE;
        ELSIF about = 'runs' THEN
            IF command = 'delete' THEN
                SELECT * INTO got FROM delete_run(subject, now);
            ELSE
                SELECT * INTO got FROM control_run(command, subject, new_note, now);
            END IF;
            IF got.decided THEN
                touched := touched || subject;
                d_tasks := d_tasks || got.of_task; d_keys := d_keys || got.of_key; d_counts := d_counts || 1::bigint;
                d_runs := d_runs || subject;
            END IF;
            tasks := tasks || got.tasks; dues := dues || got.dues;
        ELSIF about = 'tasks' THEN
            SELECT * INTO got FROM control_task(command, subject, new_note, new_until, now);
            IF got.changed > 0 THEN
                d_tasks := d_tasks || subject; d_keys := d_keys || NULL::text; d_runs := d_runs || NULL::text;
                d_counts := d_counts || got.changed::bigint;
            END IF;
            touched := touched || got.touched; tasks := tasks || got.tasks; dues := dues || got.dues;
        ELSIF about = 'keys' THEN
            SELECT * INTO got FROM control_key(command, subject, now);
            IF got.changed > 0 THEN
                d_tasks := d_tasks || got.of_task; d_keys := d_keys || got.of_key; d_runs := d_runs || NULL::text;
                d_counts := d_counts || 1::bigint;
            END IF;
            tasks := tasks || array_fill(any_lane(got.of_task), ARRAY[cardinality(got.dues)]); dues := dues || got.dues;
        ELSE
            SELECT * INTO got FROM control_schedule(command, subject, new_note, now);
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
    SELECT * INTO got FROM count_in_fan(touched, now);
    tasks := tasks || got.tasks; dues := dues || got.dues;
    PERFORM count_decisions(d_tasks, d_keys, array_fill(why, ARRAY[cardinality(d_tasks)]), d_counts, d_runs,
                   array_fill(new_note, ARRAY[cardinality(d_tasks)]), requested_by, now);
    hinted := to_hint(tasks, dues, now);
    IF (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} THEN
        PERFORM record_controlled(me, command, about, touched, subjects, answers, d_tasks, d_keys, why, now);
    END IF;
    PERFORM send_hints(me, hinted, touched);
END $$;
