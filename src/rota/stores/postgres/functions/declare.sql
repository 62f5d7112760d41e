-- twin: rota/stores/ledger/declare.py
-- declare: publish the specs of tasks and the schedules that code declares.

-- Publish the spec of a task. The caller has locked its row; `fresh` says that the caller has just added that row. A pause
-- stays. If the limits or the rate change, all parked runs of the task are unparked. If the task is enabled again, workers
-- are woken for its waiting runs.
CREATE OR REPLACE FUNCTION declare_task(
    new specs, fresh boolean, now float8, OUT answer text, OUT dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    known specs;
    in_force specs;
    repaced boolean;
    regated boolean;
BEGIN
    dues := '{}';
    IF fresh THEN
        answer := 'added';
        PERFORM put_in_force(new.name);
        UPDATE leases SET gated = true WHERE new.gated AND task = new.name AND NOT gated;
        RETURN;
    END IF;
    SELECT * INTO known FROM specs WHERE name = new.name;
    answer := 'unchanged';
    IF known.spec = new.spec THEN RETURN; END IF;
    answer := 'changed';
    UPDATE specs SET spec = new.spec, enabled = new.enabled, gated = new.gated OR paused_keys <> '{}', total = new.total,
        per_key = new.per_key, rate_interval = new.rate_interval, rate_burst = new.rate_burst,
        rate_per_key = new.rate_per_key, mark_memory = new.mark_memory, limits = new.limits, weights = new.weights
    WHERE name = new.name;
    PERFORM put_in_force(new.name);
    UPDATE leases SET gated = true WHERE new.gated AND task = new.name AND NOT gated;
    SELECT * INTO in_force FROM specs WHERE name = new.name;  -- what an operator says may hide the change
    repaced := (in_force.rate_interval, in_force.rate_burst, in_force.rate_per_key)
        IS DISTINCT FROM (known.rate_interval, known.rate_burst, known.rate_per_key);
    regated := repaced OR (in_force.total, in_force.per_key, new.spec::json ->> 'limits')
        IS DISTINCT FROM (known.total, known.per_key, known.spec::json ->> 'limits');
    IF repaced THEN
        DELETE FROM rates WHERE task = new.name;  -- the old rate may have no token for days
    END IF;
    IF regated THEN
        UPDATE queue SET hold = 0, lane_at = lane_place(task, queue, priority, due_at, now) WHERE hold = 1 AND task = new.name;
    END IF;
    IF regated OR (in_force.enabled AND NOT known.enabled) THEN
        dues := announce(new.name, now);
    END IF;
END $$;

-- Declare a schedule. The caller computes the first tick, because the store reads no triggers. A schedule that exists and fires
-- at the same times keeps its next tick. Ticks before `since` are not fired later. A schedule that has a version already comes
-- from another store, and keeps the state that it had there.
CREATE OR REPLACE FUNCTION declare_schedule(new schedules, now float8, OUT answer text, OUT due float8) LANGUAGE plpgsql AS $$
DECLARE
    known schedules;
BEGIN
    IF new.version = 0 THEN
        new.version := 1; new.since := now; new.paused := false; new.note := NULL; new.made := 0; new.recent := '{}'; new.last_at := NULL;
    END IF;
    IF NOT new.paused AND new.fires_at IS NOT NULL THEN new.look_at := greatest(new.fires_at, now); END IF;
    INSERT INTO schedule_ids VALUES (new.id) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        new.change := floor(now * {PER_SECOND})::bigint;  -- above the dead versions of a schedule that had this id
        INSERT INTO schedules SELECT new.*;
        answer := 'added'; due := new.look_at;
        RETURN;
    END IF;
    SELECT s.* INTO known FROM schedules s WHERE s.id = new.id ORDER BY s.change DESC LIMIT 1 FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'schedule % was removed meanwhile', new.id USING ERRCODE = 'serialization_failure';
    END IF;
    IF known.owner <> new.owner THEN
        answer := 'taken';
    ELSIF known.times = new.times AND known.declared = new.declared THEN
        answer := 'unchanged';
    ELSIF known.times = new.times THEN
        answer := 'changed';
        UPDATE schedules SET change = known.change + 1, task = new.task, key = new.key, declared = new.declared,
            version = known.version + 1, look_at = CASE WHEN NOT paused AND fires_at IS NOT NULL THEN greatest(fires_at, now) END
        WHERE id = new.id AND change = known.change RETURNING look_at INTO due;
    ELSE
        answer := 'changed';
        UPDATE schedules SET change = known.change + 1, task = new.task, key = new.key, declared = new.declared, times = new.times,
            anchor = new.anchor, next_at = new.next_at, fires_at = new.fires_at, version = known.version + 1, since = now, made = 0,
            look_at = CASE WHEN NOT paused AND new.fires_at IS NOT NULL THEN greatest(new.fires_at, now) END
        WHERE id = new.id AND change = known.change RETURNING look_at INTO due;
    END IF;
END $$;

-- Return the answer of a declaration that changes nothing, because it was carried out before or its terms do not hold; NULL if
-- it is to be carried out. The caller has locked the schedules. Race: a schedule that another declaration adds at the same time
-- cannot be locked. The insert in declare_schedule waits for it and finds it; then `declare` is rolled back and sent again.
CREATE OR REPLACE FUNCTION refused_terms(
    names text[], owners text[], declareds text[], times_ text[], versioned text[], expected integer[], dropped text[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    item record;
    known schedules;
    done boolean := true; taken boolean := false;
BEGIN
    FOR item IN SELECT * FROM unnest(names, owners, declareds, times_) AS i (name, owner, declared, times)
                WHERE i.declared IS NOT NULL LOOP
        SELECT * INTO known FROM schedules s WHERE s.id = item.name ORDER BY s.change DESC LIMIT 1;
        done := done AND FOUND AND known.owner = item.owner AND known.declared = item.declared AND known.times = item.times;
        taken := taken OR (known.id IS NOT NULL AND known.owner <> item.owner);
    END LOOP;
    IF done AND NOT EXISTS (SELECT FROM schedule_ids s WHERE s.id = ANY(dropped)) THEN RETURN 'unchanged'; END IF;
    IF taken THEN RETURN 'taken'; END IF;
    FOR item IN SELECT * FROM unnest(versioned, expected) AS i (name, version) LOOP
        SELECT * INTO known FROM schedules s WHERE s.id = item.name ORDER BY s.change DESC LIMIT 1;
        IF coalesce(known.version, 0) <> item.version THEN RETURN 'conflict'; END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- Declare tasks and schedules. Each array has a place for each item: `declareds` is NULL for a task, `specs_` for a schedule, and
-- `enableds` for the row of a named limit that a task has: it is added if it is missing.
CREATE OR REPLACE FUNCTION declare(
    me text, skew float8, seen float8, names text[], specs_ text[], enableds boolean[], gateds boolean[],
    totals integer[], per_keys integer[], intervals float8[], bursts integer[], by_key boolean[], memories float8[], limits_ text[],
    of_task text[], of_key text[], owners text[], declareds text[], times_ text[], anchors float8[], nexts float8[],
    fires float8[], versions integer[], sinces float8[], pauseds boolean[], notes text[], mades integer[],
    recents text[], versioned text[], expected integer[], dropped text[],
    OUT now float8, OUT hinted text[], OUT answers text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    item record;
    got record;
    added text[] := '{}';
    gating text[];
    refused text;
    which text;
    gone text[] := '{}'; gone_tasks text[] := '{}'; gone_keys text[] := '{}';
    tasks text[] := '{}'; dues float8[] := '{}';
BEGIN
    -- Lock order: schedules (2) by id, then specs (3) by name, then leases (4) by id. Two apps that start at the same time add
    -- the same rows, so new rows are added in that order too. An item that is declared twice is declared in the order given.
    PERFORM lock_schedules(names || versioned || dropped);
    now := now_of(skew, seen, true);
    IF versioned IS NOT NULL THEN
        refused := refused_terms(names, owners, declareds, times_, versioned, expected, dropped);
        IF refused IS NOT NULL THEN
            answers := array_fill(refused, ARRAY[cardinality(names) + cardinality(dropped)]);
            hinted := '{}';
            RETURN;
        END IF;
    END IF;
    answers := array_fill(NULL::text, ARRAY[cardinality(names)]);
    FOR item IN SELECT * FROM unnest(names, of_task, of_key, owners, declareds, times_, anchors, nexts, fires, versions,
            sinces, pauseds, notes, mades, recents) WITH ORDINALITY
            AS i (name, task, key, owner, declared, times, anchor, next_at, fires_at, version, since, paused, note, made,
                  recent, place) WHERE i.declared IS NOT NULL ORDER BY i.name COLLATE "C", i.place LOOP
        SELECT * INTO got FROM declare_schedule(ROW(item.name, item.task, item.key, item.owner, item.declared,
            item.times, item.anchor, item.next_at, item.fires_at, item.version, item.since, item.paused, item.note,
            item.made, ARRAY(SELECT firing::text FROM json_array_elements(item.recent::json) firing),
            (item.recent::json -> -1 ->> 0)::float8, NULL, 0)::schedules, now);
        IF got.due IS NOT NULL THEN tasks := tasks || NULL::text; dues := dues || got.due; END IF;
        answers[item.place] := got.answer;
        IF got.answer = 'added' THEN
            added := added || item.name;  -- it may be declared twice
        ELSIF NOT item.name = ANY(added) AND EXISTS (SELECT FROM unnest(versioned, expected) AS v (id, version)
                                             WHERE v.id = item.name AND v.version = 0) THEN
            RAISE EXCEPTION 'schedule % was added meanwhile', item.name USING ERRCODE = 'serialization_failure';
        END IF;
    END LOOP;
    WITH new AS (
        INSERT INTO specs
        SELECT DISTINCT ON (i.name COLLATE "C") i.name, i.spec, coalesce(i.enabled, true), false, i.gated, i.total, i.per_key, i.pace,
               i.burst, i.by_key, i.memory, coalesce(string_to_array(i.limits, E'\n'), '{}'), weights_of(i.spec)
        FROM unnest(names, specs_, enableds, gateds, totals, per_keys, intervals, bursts, by_key, memories, limits_)
            WITH ORDINALITY AS i (name, spec, enabled, gated, total, per_key, pace, burst, by_key, memory, limits, place)
        WHERE i.spec IS NOT NULL ORDER BY i.name COLLATE "C", i.place
        ON CONFLICT DO NOTHING RETURNING name
    )
    SELECT coalesce(array_agg(n.name::text), '{}') INTO added FROM new n;
    PERFORM FROM specs s WHERE s.name = ANY(names) ORDER BY s.name FOR UPDATE;
    gating := ARRAY(SELECT i.name FROM unnest(names, specs_, gateds) AS i (name, spec, gated) JOIN specs s ON s.name = i.name
                    WHERE i.gated AND (s.spec <> i.spec OR i.name = ANY(added))
                      AND strpos(i.name, ' ') = 0);  -- the row of a named limit: its leases do not change
    IF gating <> '{}' THEN
        PERFORM FROM leases l WHERE l.task = ANY(gating) ORDER BY l.id FOR NO KEY UPDATE;
    END IF;
    FOR item IN SELECT * FROM unnest(names, specs_, enableds, gateds, totals, per_keys, intervals, bursts, by_key, memories, limits_)
            WITH ORDINALITY AS i (name, spec, enabled, gated, total, per_key, pace, burst, by_key, memory, limits, place)
            WHERE i.spec IS NOT NULL AND i.enabled IS NOT NULL ORDER BY i.place LOOP
        SELECT * INTO got FROM declare_task(ROW(item.name, item.spec, item.enabled, false, item.gated, item.total,
            item.per_key, item.pace, item.burst, item.by_key, item.memory,
            coalesce(string_to_array(item.limits, E'\n'), '{}'), weights_of(item.spec), '{}'::text[])::specs, item.name = ANY(added), now);
        added := array_remove(added, item.name);
        IF got.dues <> '{}' THEN
            tasks := tasks || array_fill(any_lane(item.name), ARRAY[cardinality(got.dues)]); dues := dues || got.dues;
        END IF;
        answers[item.place] := got.answer;
    END LOOP;
    IF gating <> '{}' THEN PERFORM recount_running(gating, now); END IF;
    FOREACH which IN ARRAY dropped LOOP
        SELECT * INTO got FROM control_schedule('drop', which, NULL, now);
        answers := answers || CASE WHEN got.changed > 0 THEN 'dropped' ELSE 'unchanged' END;
        IF got.changed > 0 THEN
            PERFORM count_decisions(ARRAY[got.of_task], ARRAY[got.of_key], ARRAY['dropped'], ARRAY[1]::bigint[],
                                    ARRAY[NULL]::text[], NULL, NULL, now);
            gone := gone || which; gone_tasks := gone_tasks || got.of_task; gone_keys := gone_keys || got.of_key;
        END IF;
    END LOOP;
    hinted := to_hint(tasks, dues, now);
    IF (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} THEN
        PERFORM record_declared(me, names, specs_, of_task, of_key, answers, now);
        PERFORM record_events(me, 'schedules', array_fill('removed'::text, ARRAY[cardinality(gone)]), gone, gone_tasks,
                              gone_keys, NULL, NULL, now);
    END IF;
    PERFORM send_hints(me, hinted, NULL);
END $$;
