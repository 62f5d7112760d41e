-- twin: rota/stores/ledger/holds.py
-- Needs and groups: what flows, chains and plans are made of. A need is the id of a run or a name, as in domain.needs: a
-- success of (task, key) meets '+task key', and any end of a run of (task, key) meets '*task key'.

-- The needs that the end of a run meets; `final` is the state in which the run ended.
CREATE OR REPLACE FUNCTION met_by(id text, awaited boolean, writes_mark boolean, task text, key text, final text) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN awaited THEN ARRAY[id] ELSE '{}' END
        || CASE WHEN writes_mark THEN ARRAY['*' || task || ' ' || key] ELSE '{}' END
        || CASE WHEN writes_mark AND final = 'succeeded' THEN ARRAY['+' || task || ' ' || key] ELSE '{}' END
$$;

-- Is this name not met yet by a mark?
CREATE OR REPLACE FUNCTION is_to_come(need text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (
        SELECT FROM marks m
        WHERE m.task = substr(need, 2, strpos(need, ' ') - 2) AND m.key = substr(need, strpos(need, ' ') + 1)
          AND CASE left(need, 1) WHEN '*' THEN m.finished_at ELSE m.succeeded_at END IS NOT NULL)
$$;

-- The needs in `wanted` that are not met yet. A run among them gets the flag `awaited`.
-- Race: a run may move between queue and leases between two statements. So a run is gone only if a single statement finds it
-- in neither table.
CREATE OR REPLACE FUNCTION unmet(wanted text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    need text;
    remaining text[] := '{}';
BEGIN
    FOREACH need IN ARRAY wanted LOOP
        IF strpos(need, ' ') > 0 THEN
            IF is_to_come(need) THEN remaining := remaining || need; END IF;
            CONTINUE;
        END IF;
        LOOP
            PERFORM lock_late_lease(need);
            UPDATE leases SET awaited = true WHERE id = need;
            IF NOT FOUND THEN UPDATE queue SET awaited = true WHERE id = need; END IF;
            IF FOUND THEN
                remaining := remaining || need;
                EXIT;
            END IF;
            EXIT WHEN NOT EXISTS (SELECT FROM leases WHERE id = need UNION ALL SELECT FROM queue WHERE id = need);
        END LOOP;
    END LOOP;
    RETURN remaining;
END $$;

-- Remove the met needs `gone` from the runs that wait for them. A run without other needs may start. Returns the arrivals for
-- `to_hint`.
-- Needs are a set and not a counter, so to meet a need twice changes nothing.
-- Race: two parents of a run end at the same time. Each settle locks the row of the run and reads its needs after that, so the
-- second settle removes the last need. Only the rows of `gone` are deleted from waits: a put may have added other rows.
-- A run that has cooldown rules is judged by the mark that its last parent has written: it is due when every rule that
-- applies now has passed.
CREATE OR REPLACE FUNCTION meet_needs(gone text[], now float8, OUT tasks text[], OUT dues float8[]) LANGUAGE plpgsql AS $$
DECLARE
    waiting text[] := ARRAY(SELECT DISTINCT w.run::text FROM waits w WHERE w.ended = ANY(gone));
    child record;
    due float8;
BEGIN
    tasks := '{}'; dues := '{}';
    IF waiting = '{}' THEN RETURN; END IF;
    PERFORM FROM queue q WHERE q.id = ANY(waiting) ORDER BY q.id FOR NO KEY UPDATE;
    -- A cancel writes no mark, but it meets a need of any end ('*'). So a mark is written here if a run waited for that end:
    -- a run that is put later does not wait for it again.
    INSERT INTO marks AS m (task, key, finished_at, failures)
    SELECT e.task, e.key, now, 0
    FROM (SELECT DISTINCT w.ended AS name, substr(w.ended, 2, strpos(w.ended, ' ') - 2) AS task,
                 substr(w.ended, strpos(w.ended, ' ') + 1) AS key
          FROM waits w WHERE w.ended = ANY(gone) AND w.run = ANY(waiting) AND starts_with(w.ended, '*')) AS e
    WHERE is_to_come(e.name)  -- the caller has mostly written the mark already
    ORDER BY e.task COLLATE "C", e.key COLLATE "C"
    ON CONFLICT (task, key) DO UPDATE SET finished_at = coalesce(m.finished_at, excluded.finished_at);
    DELETE FROM waits w WHERE w.ended = ANY(gone) AND w.run = ANY(waiting);
    WITH freed AS (
        UPDATE queue q SET
            needs = nullif(ARRAY(SELECT n FROM unnest(q.needs) n WHERE n <> ALL(gone)), '{}'),
            hold = CASE WHEN q.hold = 2 AND q.needs <@ gone THEN 0 ELSE q.hold END,
            lane_at = lane_place(q.task, q.queue, q.priority, q.due_at, now)
        WHERE q.id = ANY(waiting) AND q.needs && gone
        RETURNING q.id, q.task, q.queue, q.due_at, q.hold, q.needs, q.cooldowns
    )
    SELECT array_agg(lane_name(f.task, f.queue)) FILTER (WHERE f.hold = 0 AND f.cooldowns IS NULL),
           array_agg(f.due_at) FILTER (WHERE f.hold = 0 AND f.cooldowns IS NULL)
    INTO tasks, dues FROM freed f;
    tasks := coalesce(tasks, '{}'); dues := coalesce(dues, '{}');
    FOR child IN SELECT q.* FROM queue q WHERE q.id = ANY(waiting) AND q.cooldowns IS NOT NULL AND q.needs IS NULL ORDER BY q.id
    LOOP
        SELECT after(greatest(child.due_at, max(m.finished_at + (rule ->> 1)::float8)), 0) INTO due
        FROM marks m CROSS JOIN json_array_elements(child.cooldowns::json) AS rule
        WHERE m.task = child.task AND m.key = coalesce(child.unique_key, child.key, '')
          AND m.failures >= (rule ->> 0)::integer;
        UPDATE queue q SET due_at = due, lane_at = lane_place(q.task, q.queue, q.priority, due, now),
            expires_at = noted_expiry(moved_expiry(q.expires_at, q.due_at, due), now)
        WHERE q.id = child.id AND q.due_at <> due;
        IF child.hold = 0 THEN
            tasks := tasks || lane_name(child.task, child.queue);
            dues := dues || coalesce(due, child.due_at);
        END IF;
    END LOOP;
END $$;

-- The runs that wait for the end of the queued runs `ids`.
CREATE OR REPLACE FUNCTION behind_of(ids text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY(SELECT w.run::text FROM queue q CROSS JOIN LATERAL (SELECT w.run FROM waits w WHERE w.ended = ANY(
            ARRAY[q.id, '*' || q.task || ' ' || coalesce(q.unique_key, q.key, '')]) OFFSET 0) AS w
        WHERE q.id = ANY(ids) AND (q.awaited OR q.writes_mark))
$$;

-- The tasks of the queued runs of these groups. A verb that may end these runs locks the gates of these tasks.
CREATE OR REPLACE FUNCTION tasks_in(groups text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY(SELECT DISTINCT q.task::text FROM queue q
                 WHERE q.id = ANY(ARRAY(SELECT g.run FROM grouped g WHERE g.grp = ANY(groups))))
$$;

-- End the queued runs of the group `which`, except the runs `except_ids` and the runs with a unique key in `keep`. The caller
-- counts a decision for each ended run.
CREATE OR REPLACE FUNCTION cancel_group(
    which text, except_ids text[], keep text[], why text, new_note text, now float8,
    OUT ended text[], OUT of_task text[], OUT of_key text[], OUT tasks text[], OUT dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    waiting text[];
    gone record;
BEGIN
    waiting := ARRAY(
        SELECT q.id::text FROM queue q WHERE q.id = ANY(ARRAY(SELECT g.run FROM grouped g WHERE g.grp = which))
          AND q.id NOT IN (SELECT unnest(except_ids)) AND (q.unique_key IS NULL OR q.unique_key NOT IN (SELECT unnest(keep)))
        ORDER BY q.id FOR UPDATE NOWAIT);  -- all are locked already, except a run that has just been put
    PERFORM lock_late_gates(ARRAY(SELECT DISTINCT q.task::text FROM queue q WHERE q.id = ANY(waiting)));
    SELECT * INTO gone FROM end_waiting(waiting, why, new_note, now);
    ended := coalesce(gone.ended, '{}'); of_task := gone.of_task; of_key := gone.of_key;
    tasks := gone.tasks; dues := gone.dues;
END $$;
