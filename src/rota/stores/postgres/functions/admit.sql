-- twin: rota/stores/ledger/admit.py
-- Admit one run. The guards of the run are judged in the transaction that adds the run to the queue; the first refusal counts.

-- The due time of a new run.
CREATE OR REPLACE FUNCTION due_of(new incoming, now float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(new.at, after(now, coalesce(new.delay, 0)))
$$;

-- The expiry of a new run: `expires_after` counts from its due time, but not from a time in the past.
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

-- The run whose success keeps `new` out: see done_by.
CREATE OR REPLACE FUNCTION done_run(new incoming, now float8) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN done_by(new, (SELECT m.succeeded_at FROM marks m WHERE m.task = new.task AND m.key = new.unique_key), now);
END $$;

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
        IF new.uniqueness = 'done' AND done_by(new, mark.succeeded_at, now) IS NOT NULL THEN RETURN 'already_done'; END IF;
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
            SELECT FROM lanes(ARRAY[new.task], '{}') l CROSS JOIN LATERAL (
                SELECT FROM queue q
                WHERE q.hold = 0 AND q.task = l.task AND q.queue = l.queue AND q.priority = l.priority AND q.lane_at >= l.floor
                LIMIT new.max_pending) AS q
            LIMIT new.max_pending) AS ready;
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
    remaining text[] := holder.needs;
    new_hold smallint;
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
        remaining := nullif(unmet(array_remove(ARRAY(SELECT json_array_elements_text(new.needs::json)), holder.id::text)),
                        '{}');  -- a run that waited for itself would never start
        DELETE FROM waits w WHERE w.ended = ANY(holder.needs) AND w.run = holder.id;
        INSERT INTO waits SELECT need, holder.id FROM unnest(remaining) AS need ON CONFLICT DO NOTHING;
    END IF;
    -- A parked run that moved is unparked: the next claim checks the limit again, at the run's new place in line.
    new_hold := CASE WHEN holder.hold = 3 THEN 3 WHEN remaining IS NOT NULL THEN 2
                 WHEN holder.hold = 1 AND due = holder.due_at AND level = holder.priority THEN 1
                 ELSE 0 END;
    UPDATE queue SET due_at = due, lane_at = lane_place(new.task, holder.queue, level, due, now),
        expires_at = noted_expiry(joined_expiry(holder, new, due, now), now), priority = level, hold = new_hold,
        needs = remaining, touches = coalesce(holder.touches, 1) + 1, touched_at = now
    WHERE id = holder.id;
    UPDATE queue SET body = new.body, failures = 0, losses = 0, saved = NULL, progress = NULL, error = NULL,
        attempts = replaced_attempts(holder, now)
    WHERE id = holder.id AND body <> new.body;
    -- Race: a claim that runs at the same time skips the holder, because this put has locked it. So a worker is woken also if
    -- the holder was due before the join.
    IF new_hold < 2 AND (due < holder.due_at OR new_hold <> holder.hold OR (new_hold = 0 AND due <= now)) THEN
        dues := dues || due;
    END IF;
    IF (due > holder.due_at OR new_hold = 2) AND holder.hold = 0 AND holder.due_at <= now THEN
        dues := dues || freed(holder.task, holder.key, false, now);
    END IF;
    RETURN dues;
END $$;

-- The running runs with the unique key of `new`, in the order of their arrival.
CREATE OR REPLACE FUNCTION equals_of(new incoming) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY(SELECT l.id::text FROM leases l WHERE l.task = new.task AND l.unique_key = new.unique_key ORDER BY l.seq)
$$;

-- The answer to a put whose submitter gave the id, if that id is taken by a run, or by one that retention has deleted. NULL:
-- `take_ids` of this put took the id.
CREATE OR REPLACE FUNCTION known_id(new incoming) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    known record;
BEGIN
    -- Race: a sweep deletes the run and sets the state of its id. One statement sees both or neither.
    SELECT i.fingerprint, i.state, EXISTS (SELECT FROM queue q WHERE q.id = new.id UNION ALL SELECT FROM leases l
        WHERE l.id = new.id UNION ALL SELECT FROM finished f WHERE f.id = new.id) AS run
    INTO known FROM (SELECT new.id AS id) AS n LEFT JOIN ids i ON i.id = n.id;
    IF known.state IS NULL AND NOT known.run THEN RETURN NULL; END IF;
    RETURN CASE WHEN known.fingerprint = new.fingerprint THEN 'joined' ELSE 'id_conflict' END;
END $$;

-- Cancel the equal runs of `new`: those that wait for a retry end, and those that run are asked to stop. Returns these runs,
-- their keys, and the arrivals for `to_hint`. Lock order: lock_joined has locked the gate and lock_needs the runs; a run that
-- came since then is too late for that order, so NOWAIT.
CREATE OR REPLACE FUNCTION replace_holders(
    new incoming, now float8, OUT cancelled text[], OUT keys text[], OUT tasks text[], OUT dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    words text := 'replaced by ' || new.id;
    requested text[] := ARRAY(SELECT l.id::text FROM leases l WHERE l.task = new.task AND l.unique_key = new.unique_key
                          AND NOT l.cancel_requested ORDER BY l.id);
    called text[] := ARRAY(SELECT q.id::text FROM queue q WHERE q.task = new.task AND q.unique_key = new.unique_key
                           AND q.fence > 0 ORDER BY q.id FOR UPDATE NOWAIT);
    which text;
BEGIN
    cancelled := '{}'; keys := '{}'; tasks := '{}'; dues := '{}';
    FOREACH which IN ARRAY requested LOOP
        PERFORM lock_late_lease(which);
        UPDATE leases l SET cancel_requested = true, pause_requested = false, note = words WHERE l.id = which
        RETURNING cancelled || l.id::text, keys || l.key::text INTO cancelled, keys;
    END LOOP;
    IF called <> '{}' THEN
        SELECT cancelled || e.ended, keys || e.of_key, e.tasks, e.dues INTO cancelled, keys, tasks, dues
        FROM end_waiting(called, 'cancelled', words, now) e;
    END IF;
END $$;

-- Judge all guards of `new` and admit it, join it to the holder of its unique key, or refuse it. Returns:
--   run, reason      the decision
--   dues             the times at which runs of its task become due
--   late, late_keys  the expired holders that were ended, and their keys
--   replaced, replaced_keys  the equal runs that were cancelled, and their keys
--   more, more_dues  the arrivals for `to_hint` because of these ends
-- `alone`: the verb puts no other run. Lock order: if the verb puts several runs, `lock_needs` has locked their holders by id
-- before. A holder that was put since then is too late for that order, so NOWAIT.
CREATE OR REPLACE FUNCTION admit(
    new incoming, now float8, arrival bigint, alone boolean, OUT run text, OUT reason text, OUT dues float8[], OUT late text[],
    OUT late_keys text[], OUT replaced text[], OUT replaced_keys text[], OUT more text[], OUT more_dues float8[]
) LANGUAGE plpgsql AS $$
DECLARE
    holder queue;
    remaining text[];
    newer_equals text[];
    tried text[];
    due float8 := due_of(new, now);
BEGIN
    run := new.id; reason := 'accepted'; dues := '{}';
    IF new.fingerprint IS NOT NULL THEN
        reason := known_id(new);
        IF reason IS NOT NULL THEN RETURN; END IF;
        reason := 'accepted';
    ELSIF EXISTS (SELECT FROM queue WHERE id = new.id UNION ALL SELECT FROM leases WHERE id = new.id
               UNION ALL SELECT FROM finished WHERE id = new.id) THEN
        RETURN;  -- the same id again answers the same
    END IF;
    IF EXISTS (SELECT FROM specs WHERE name = new.task AND NOT enabled) THEN
        reason := 'disabled';
        RETURN;
    END IF;
    IF new.unique_row IS NOT NULL THEN
        SELECT h.run, h.reason INTO run, reason FROM held_by_other(new, now) h;
        IF run IS NOT NULL THEN RETURN; END IF;
        run := new.id;
    END IF;
    LOOP
        IF new.unique_key IS NOT NULL THEN
            -- If two runs of the key wait, the first was tried and is `ahead`, and the second waits for the end of the first:
            -- then the second is the holder. A run that is too late to start comes first: it ends below, and the loop looks again.
            IF alone THEN
                SELECT * INTO holder FROM queue q WHERE q.task = new.task AND q.unique_key = new.unique_key
                ORDER BY (q.hold <> 3 AND q.expires_at <= now) IS TRUE DESC, q.ahead LIMIT 1 FOR NO KEY UPDATE;
            ELSE
                SELECT * INTO holder FROM queue q WHERE q.task = new.task AND q.unique_key = new.unique_key
                ORDER BY (q.hold <> 3 AND q.expires_at <= now) IS TRUE DESC, q.ahead LIMIT 1 FOR NO KEY UPDATE NOWAIT;
            END IF;
            tried := NULL;
            IF FOUND AND holder.hold <> 3 AND holder.expires_at <= now THEN
                -- The holder is too late to start. A run that joined it would be lost with it, so the holder ends here.
                SELECT late || e.ended, late_keys || e.of_key, more || e.tasks, more_dues || e.dues
                INTO late, late_keys, more, more_dues
                FROM end_waiting(ARRAY[holder.id::text], 'expired', NULL, now) e;
                CONTINUE;
            ELSIF FOUND AND new.meeting = 'replace' AND holder.fence > 0 THEN
                NULL;  -- replace_holders ends it
            ELSIF FOUND AND new.meeting = 'wait' AND holder.fence > 0 AND (holder.ahead OR NOT EXISTS (
                SELECT FROM queue q WHERE q.task = new.task AND q.unique_key = new.unique_key AND q.ahead)) THEN
                tried := ARRAY[holder.id::text];
                UPDATE queue SET ahead = true WHERE id = holder.id AND NOT ahead;
            ELSIF FOUND THEN
                run := holder.id;
                IF new.meeting IN ('refuse', 'full') THEN
                    reason := CASE new.meeting WHEN 'full' THEN 'buffer_full' ELSE 'already_queued' END;
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
                    reason := CASE new.meeting WHEN 'full' THEN 'buffer_full' ELSE 'already_running' END;
                    RETURN;
                END IF;
                run := new.id;
            END IF;
        END IF;
        reason := refusal(new, now);
        IF reason = 'already_done' AND new.unique_row IS NOT NULL THEN run := done_run(new, now); END IF;
        IF reason IS NOT NULL THEN RETURN; END IF;
        reason := 'accepted';
        IF new.meeting = 'replace' THEN
            SELECT replaced || r.cancelled, replaced_keys || r.keys, more || r.tasks, more_dues || r.dues
            INTO replaced, replaced_keys, more, more_dues FROM replace_holders(new, now) r;
        END IF;
        IF new.needs IS NOT NULL OR new.behind THEN
            remaining := unmet(ARRAY(SELECT json_array_elements_text(new.needs::json))
                || CASE WHEN new.behind THEN equals_of(new) || tried END);
        END IF;
        INSERT INTO queue ({stored}, queue, share, seq, writes_mark, priority, created_at, due_at, lane_at, expires_at, needs, cooldowns, hold, awaited)
        VALUES ({new.stored}, coalesce(new.queue, ''), new.share, arrival, coalesce(new.writes_mark, false), coalesce(new.priority, 0), now, due,
            lane_place(new.task, coalesce(new.queue, ''), coalesce(new.priority, 0)::smallint, due, now),
            noted_expiry(expiry_of(new, now), now), nullif(remaining, '{}'),
            CASE WHEN new.behind AND remaining <> '{}' THEN new.cooldowns END, CASE WHEN remaining <> '{}' THEN 2 ELSE 0 END,
            new.callbacks IS NOT NULL)
        ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
        -- Race: another put has added a run since the look above. If it has the same id, it is this run, sent twice, and the
        -- answer is the same. If it has the same unique key, the next round of the loop finds it as the holder.
        IF EXISTS (SELECT FROM queue WHERE id = new.id) THEN RETURN; END IF;
    END LOOP;
    -- Race: the insert may have waited for a claim that moved a run of the same id or key into leases. Only a later statement
    -- than the insert sees that lease, so id and key are checked again here.
    IF EXISTS (SELECT FROM leases WHERE id = new.id UNION ALL SELECT FROM finished WHERE id = new.id) THEN
        DELETE FROM queue WHERE id = new.id;
        RETURN;
    END IF;
    IF new.unique_key IS NOT NULL AND new.uniqueness <> 'queued' THEN
        SELECT l.id INTO holder.id FROM leases l WHERE l.task = new.task AND l.unique_key = new.unique_key LIMIT 1;
        IF FOUND THEN
            DELETE FROM queue WHERE id = new.id;
            run := holder.id; reason := CASE new.meeting WHEN 'full' THEN 'buffer_full' ELSE 'already_running' END;
            RETURN;
        END IF;
        IF new.uniqueness = 'done' AND refusal(new, now) = 'already_done' THEN
            DELETE FROM queue WHERE id = new.id;
            run := done_run(new, now);
            reason := 'already_done';
            RETURN;
        END IF;
    END IF;
    IF new.behind THEN
        newer_equals := ARRAY(SELECT e FROM unnest(equals_of(new)) e WHERE e <> ALL(remaining));
        IF newer_equals <> '{}' THEN
            remaining := remaining || unmet(newer_equals);
            UPDATE queue SET needs = nullif(remaining, '{}'), cooldowns = CASE WHEN remaining <> '{}' THEN new.cooldowns END,
                hold = CASE WHEN remaining <> '{}' THEN 2 ELSE 0 END
            WHERE id = new.id;
        END IF;
    END IF;
    IF remaining IS NOT NULL AND remaining <> '{}' THEN
        INSERT INTO waits SELECT need, new.id FROM unnest(remaining) AS need ON CONFLICT DO NOTHING;
    ELSE
        dues := ARRAY[due];
    END IF;
    IF new.grp IS NOT NULL THEN
        INSERT INTO grouped VALUES (new.id, new.grp) ON CONFLICT DO NOTHING;
    END IF;
    IF new.callbacks IS NOT NULL THEN
        INSERT INTO callbacks
        SELECT new.id, c ->> 0, c ->> 1, c ->> 2, convert_to(c ->> 3, 'UTF8'), (c ->> 4)::smallint, kept_queue(c ->> 5)
        FROM json_array_elements(new.callbacks::json) AS c ON CONFLICT DO NOTHING;
    END IF;
    IF new.fingerprint IS NOT NULL THEN
        INSERT INTO ids (id, fingerprint) VALUES (new.id, new.fingerprint)
        ON CONFLICT (id) DO UPDATE SET fingerprint = excluded.fingerprint, state = NULL, ended_at = NULL;
    END IF;
END $$;
