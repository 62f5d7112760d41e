-- twin: rota/stores/ledger/admit.py
-- Every run's guards are judged in the step that admits it; the first no wins.

CREATE OR REPLACE FUNCTION due_of(new incoming, now float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(new.at, after(now, coalesce(new.delay, 0)))
$$;

CREATE OR REPLACE FUNCTION expiry_of(new incoming, now float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN new.expires_after IS NOT NULL
                THEN after(greatest(now, coalesce(new.at, after(now, coalesce(new.delay, 0)))), new.expires_after)
                ELSE new.expires_at END
$$;

-- The expiry of a run whose due time moves: the time between due and expiry stays the same.
CREATE OR REPLACE FUNCTION moved_expiry(expires float8, before float8, due float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN due = before THEN expires ELSE after(due, expires - before) END
$$;

-- The expiry after a join: that of the newcomer wins, counted from the due time after the join. A join never makes a run
-- expire before it is due.
CREATE OR REPLACE FUNCTION joined_expiry(holder queue, new incoming, due float8, now float8) RETURNS float8
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN new.expires_after IS NOT NULL THEN after(greatest(now, due), new.expires_after)
                WHEN new.expires_at > due THEN new.expires_at
                ELSE moved_expiry(holder.expires_at, holder.due_at, due) END
$$;

-- The attempts of a run whose work is replaced. They stay for people to read, and a `replaced` row behind them says when
-- the new work came. If the work is replaced again before it is called, that row gets the new time: many rows would push
-- the attempts out of the list.
CREATE OR REPLACE FUNCTION replaced_attempts(holder queue, now float8) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cardinality(holder.attempts) > 0 THEN
        CASE WHEN holder.attempts[cardinality(holder.attempts)] LIKE '{"fence":%,"worker":"","outcome":"replaced",%'
             THEN holder.attempts[:cardinality(holder.attempts) - 1]
             ELSE latest_attempts(holder.attempts) END
        || ('{"fence":' || holder.fence || ',"worker":"","outcome":"replaced","claimed_at":' || now || ',"ended_at":' || now
            || '}') END
$$;

-- Return a refusal because of the mark of the key or of the number of waiting runs; NULL if the run is admitted.
CREATE OR REPLACE FUNCTION refusal(new incoming, now float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    mark marks;
    rule json;
    waiting bigint;
BEGIN
    IF new.uniqueness = 'done' OR new.cooldowns IS NOT NULL THEN
        SELECT * INTO mark FROM marks m
        WHERE m.task = new.task AND m.key = coalesce(new.unique_key, new.key, '');
        IF new.uniqueness = 'done' AND mark.succeeded_at IS NOT NULL THEN RETURN 'already_done'; END IF;
        IF new.cooldowns IS NOT NULL AND mark.finished_at IS NOT NULL THEN
            FOR rule IN SELECT * FROM json_array_elements(new.cooldowns::json) LOOP
                IF mark.failures >= (rule ->> 0)::integer AND now < mark.finished_at + (rule ->> 1)::float8 THEN
                    RETURN coalesce(rule ->> 2, 'resting');
                END IF;
            END LOOP;
        END IF;
    END IF;
    IF new.max_pending IS NOT NULL THEN
        SELECT count(*) INTO waiting FROM (
            SELECT FROM queue q WHERE q.hold = 0 AND q.task = new.task LIMIT new.max_pending) AS ready;
        IF waiting < new.max_pending THEN
            SELECT waiting + count(*) INTO waiting FROM (
                SELECT FROM queue q WHERE q.hold = 1 AND q.task = new.task LIMIT new.max_pending) AS parked;
        END IF;
        IF waiting >= new.max_pending THEN RETURN 'queue_full'; END IF;
    END IF;
    RETURN NULL;
END $$;

-- Give `holder`, which waits and whose row the caller has locked, the arguments of `new`, and move its due time as `new`
-- asks; the higher priority wins. If the arguments differ, the run starts afresh. If `new` belongs to a group, its needs
-- replace those of the holder. Returns the instants at which runs of the task become due because of the join.
CREATE OR REPLACE FUNCTION join_holder(holder queue, new incoming, now float8) RETURNS float8[] LANGUAGE plpgsql AS $$
DECLARE
    due float8 := holder.due_at;
    wanted float8 := due_of(new, now);
    still text[] := holder.needs;
    held smallint;
    level smallint := greatest(holder.priority, coalesce(new.priority, 0));
    dues float8[] := '{}';
BEGIN
    IF new.meeting = 'push' THEN
        due := greatest(due, CASE WHEN new.max_wait IS NULL THEN wanted
                                  ELSE least(wanted, holder.created_at + new.max_wait) END);
    ELSIF new.meeting = 'set' THEN
        due := wanted;
    END IF;
    IF new.grp IS NOT NULL AND (holder.needs IS NOT NULL OR new.needs IS NOT NULL) THEN
        still := nullif(unmet(array_remove(ARRAY(SELECT json_array_elements_text(new.needs::json)), holder.id::text)),
                        '{}');  -- a run that waited for itself would never start
        DELETE FROM waits w WHERE w.ended = ANY(holder.needs) AND w.run = holder.id;
        INSERT INTO waits SELECT need, holder.id FROM unnest(still) AS need ON CONFLICT DO NOTHING;
    END IF;
    -- A parked run that moved is unparked: the next claim checks the limit again, at the run's new place in line.
    held := CASE WHEN holder.hold = 3 THEN 3 WHEN still IS NOT NULL THEN 2
                 WHEN holder.hold = 1 AND due = holder.due_at AND level = holder.priority THEN 1
                 ELSE 0 END;
    UPDATE queue SET due_at = due, expires_at = joined_expiry(holder, new, due, now), priority = level, hold = held,
        needs = still, touches = coalesce(holder.touches, 1) + 1, touched_at = now
    WHERE id = holder.id;
    UPDATE queue SET body = new.body, failures = 0, losses = 0, saved = NULL, progress = NULL, error = NULL,
        attempts = replaced_attempts(holder, now)
    WHERE id = holder.id AND body <> new.body;
    -- Also where it was due already: a claim beside this put has passed it over, because it is locked here.
    IF held < 2 AND (due < holder.due_at OR held <> holder.hold OR (held = 0 AND due <= now)) THEN
        dues := dues || due;
    END IF;
    IF (due > holder.due_at OR held = 2) AND holder.hold = 0 AND holder.due_at <= now THEN
        dues := dues || freed(holder.task, holder.key, false, now);
    END IF;
    RETURN dues;
END $$;

-- The equal runs that run now, in the order of their arrival.
CREATE OR REPLACE FUNCTION equals_of(new incoming) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY(SELECT l.id::text FROM leases l WHERE l.task = new.task AND l.unique_key = new.unique_key ORDER BY l.seq)
$$;

-- One run through all its guards. `dues` is when something of its task becomes due, `late` what it found expired.
-- `alone`: the verb puts no other run. If it puts several, their holders are locked by id before (`lock_needs`). A holder
-- that came in since then is too late for that order: it is locked NOWAIT.
CREATE OR REPLACE FUNCTION admit(
    new incoming, now float8, arrival bigint, alone boolean, OUT run text, OUT reason text, OUT dues float8[], OUT late text[],
    OUT late_keys text[], OUT more text[], OUT more_dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    holder queue;
    still text[];
    since text[];
    tried text[];
    due float8 := due_of(new, now);
BEGIN
    run := new.id; reason := 'accepted'; dues := '{}';
    IF EXISTS (SELECT FROM queue WHERE id = new.id UNION ALL SELECT FROM leases WHERE id = new.id
               UNION ALL SELECT FROM finished WHERE id = new.id) THEN
        RETURN;  -- the same id again answers the same
    END IF;
    IF EXISTS (SELECT FROM specs WHERE name = new.task AND NOT enabled) THEN
        reason := 'disabled';
        RETURN;
    END IF;
    LOOP
        IF new.unique_key IS NOT NULL THEN
            -- If two wait, one was tried and is `ahead`, and the other waits for its end: the untried run is the holder.
            IF alone THEN
                SELECT * INTO holder FROM queue q WHERE q.task = new.task AND q.unique_key = new.unique_key
                ORDER BY q.ahead LIMIT 1 FOR NO KEY UPDATE;
            ELSE
                SELECT * INTO holder FROM queue q WHERE q.task = new.task AND q.unique_key = new.unique_key
                ORDER BY q.ahead LIMIT 1 FOR NO KEY UPDATE NOWAIT;
            END IF;
            tried := NULL;
            IF FOUND AND holder.hold <> 3 AND holder.expires_at <= now THEN
                -- Too late to start: whoever joined it would be lost with it.
                SELECT late || e.ended, late_keys || e.of_key, more || e.tasks, more_dues || e.dues
                INTO late, late_keys, more, more_dues
                FROM end_waiting(ARRAY[holder.id::text], 'expired', NULL, now) e;
                CONTINUE;
            ELSIF FOUND AND new.meeting = 'wait' AND holder.fence > 0 AND (holder.ahead OR NOT EXISTS (
                SELECT FROM queue q WHERE q.task = new.task AND q.unique_key = new.unique_key AND q.ahead)) THEN
                tried := ARRAY[holder.id::text];
                UPDATE queue SET ahead = true WHERE id = holder.id AND NOT ahead;
            ELSIF FOUND THEN
                run := holder.id;
                IF new.meeting = 'refuse' THEN
                    reason := 'already_queued';
                ELSE
                    reason := 'joined';
                    dues := join_holder(holder, new, now);
                END IF;
                RETURN;
            END IF;
            IF new.uniqueness <> 'queued' THEN
                SELECT l.id INTO run FROM leases l WHERE l.task = new.task AND l.unique_key = new.unique_key
                ORDER BY l.seq LIMIT 1;
                IF FOUND THEN
                    reason := 'already_running';
                    RETURN;
                END IF;
                run := new.id;
            END IF;
        END IF;
        reason := refusal(new, now);
        IF reason IS NOT NULL THEN RETURN; END IF;
        reason := 'accepted';
        IF new.needs IS NOT NULL OR new.behind THEN
            still := unmet(ARRAY(SELECT json_array_elements_text(new.needs::json))
                || CASE WHEN new.behind THEN equals_of(new) || tried END);
        END IF;
        INSERT INTO queue ({stored}, seq, writes_mark, priority, created_at, due_at, expires_at, needs, cooldowns, hold)
        VALUES ({new.stored}, arrival, coalesce(new.writes_mark, false), coalesce(new.priority, 0), now, due,
            expiry_of(new, now), nullif(still, '{}'),
            CASE WHEN new.behind AND still <> '{}' THEN new.cooldowns END, CASE WHEN still <> '{}' THEN 2 ELSE 0 END)
        ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
        -- Someone came between: with the same id, which answers the same, or with the same key, who is met now.
        IF EXISTS (SELECT FROM queue WHERE id = new.id) THEN RETURN; END IF;
    END LOOP;
    -- The insert may have waited for a claim of the same id or key: what it left is seen only by a later statement.
    IF EXISTS (SELECT FROM leases WHERE id = new.id UNION ALL SELECT FROM finished WHERE id = new.id) THEN
        DELETE FROM queue WHERE id = new.id;
        RETURN;
    END IF;
    IF new.unique_key IS NOT NULL AND new.uniqueness <> 'queued' THEN
        SELECT l.id INTO holder.id FROM leases l WHERE l.task = new.task AND l.unique_key = new.unique_key LIMIT 1;
        IF FOUND THEN
            DELETE FROM queue WHERE id = new.id;
            run := holder.id; reason := 'already_running';
            RETURN;
        END IF;
        IF new.uniqueness = 'done' AND refusal(new, now) = 'already_done' THEN
            DELETE FROM queue WHERE id = new.id;
            reason := 'already_done';
            RETURN;
        END IF;
    END IF;
    IF new.behind THEN
        since := ARRAY(SELECT e FROM unnest(equals_of(new)) e WHERE e <> ALL(still));
        IF since <> '{}' THEN
            still := still || unmet(since);
            UPDATE queue SET needs = nullif(still, '{}'), cooldowns = CASE WHEN still <> '{}' THEN new.cooldowns END,
                hold = CASE WHEN still <> '{}' THEN 2 ELSE 0 END
            WHERE id = new.id;
        END IF;
    END IF;
    IF still IS NOT NULL AND still <> '{}' THEN
        INSERT INTO waits SELECT need, new.id FROM unnest(still) AS need ON CONFLICT DO NOTHING;
    ELSE
        dues := ARRAY[due];
    END IF;
    IF new.grp IS NOT NULL THEN
        INSERT INTO grouped VALUES (new.id, new.grp) ON CONFLICT DO NOTHING;
    END IF;
END $$;
