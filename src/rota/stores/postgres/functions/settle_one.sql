-- twin: rota/stores/ledger/settle.py
-- One settlement that `finish_many` cannot apply.

-- The attempts that a run keeps when one more is added.
CREATE OR REPLACE FUNCTION latest_attempts(attempts text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cardinality(attempts) >= {ATTEMPTS_KEPT}
                THEN attempts[cardinality(attempts) + 2 - {ATTEMPTS_KEPT}:] ELSE attempts END
$$;

-- The attempts of a run with one more. The client sends the attempt as JSON without braces, and the store adds the fields that
-- only the store knows. An attempt begins with fence, worker and outcome: `was_settled` looks for these.
CREATE OR REPLACE FUNCTION attempts_of(l leases, attempt text, now float8) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT latest_attempts(l.attempts)
        || ('{"fence":' || l.fence || ',"worker":' || to_json(l.worker)::text || ',' || attempt
            || ',"claimed_at":' || l.claimed_at || ',"ended_at":' || now || '}')
$$;

-- Was this settlement applied before? The worker of a lapsed lease and the worker that rescued the run send the same fence and
-- the same worker name: the first an ending, the second `lost`. So a settlement is a resend only if both or neither are `lost`.
CREATE OR REPLACE FUNCTION was_settled(s settlement) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM runs r CROSS JOIN unnest(r.attempts) AS a
        CROSS JOIN (VALUES ('{"fence":' || s.fence || ',"worker":' || to_json(s.worker)::text || ',')) AS claim (text)
        WHERE r.id = s.id AND starts_with(a, claim.text) AND starts_with(a, claim.text || '"outcome":"lost"') = s.lost)
$$;

-- Add an ended run to finished. The caller has deleted its lease.
CREATE OR REPLACE FUNCTION finish(l leases, s settlement, final text, why text, now float8) RETURNS void LANGUAGE sql AS $$
    INSERT INTO finished ({carried}, fence, due_at, expires_at, awaited, cancel_requested, pause_requested, note, failures,
        losses, finished_at, state, reason, result, attempts, error, progress, saved)
    VALUES ({l.carried}, l.fence, l.due_at, l.expires_at, l.awaited, l.cancel_requested, l.pause_requested, l.note,
        l.failures + (s.charge = 'failure')::integer, l.losses + (s.charge = 'loss')::integer, now, final, why, s.result,
        attempts_of(l, s.attempt, now), s.error, coalesce(s.progress, l.progress), coalesce(s.saved, l.saved))
$$;

-- Write the mark of a run that succeeded or failed.
CREATE OR REPLACE FUNCTION mark_after(l leases, final text, now float8) RETURNS void LANGUAGE sql AS $$
    INSERT INTO marks AS m (task, key, succeeded_at, finished_at, failures)
    SELECT l.task, coalesce(l.unique_key, l.key, ''), CASE final WHEN 'succeeded' THEN now END, now,
           CASE final WHEN 'succeeded' THEN 0 ELSE 1 END
    WHERE final IN ('succeeded', 'failed')
    ON CONFLICT (task, key) DO UPDATE SET finished_at = now,
        succeeded_at = CASE final WHEN 'succeeded' THEN now ELSE m.succeeded_at END,
        failures = CASE final WHEN 'succeeded' THEN 0 ELSE m.failures + 1 END
$$;

-- The run of `l` gives way to `holder`, a waiting run with the same unique key. If both have the same arguments, the holder
-- takes `failed_count` and the earlier due time, and its new due time is returned. If the arguments differ, the holder is other
-- work: it keeps its own due time and has no failures, and NULL is returned. The caller ends the run of `l` as superseded.
-- Lock order: the caller has locked the holder.
CREATE OR REPLACE FUNCTION give_way(l leases, holder queue, due float8, failed_count integer, now float8) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
    new_due float8;
BEGIN
    UPDATE queue SET due_at = least(due_at, due), lane_at = lane_place(task, queue, priority, least(due_at, due), now),
        failures = greatest(failures, failed_count),
        hold = CASE WHEN hold = 1 THEN 0 ELSE hold END
    WHERE id = holder.id AND body = l.body RETURNING due_at INTO new_due;
    RETURN new_due;
END $$;

-- The run of `l` waits again, unless it gives way to a waiting run with its unique key (`heir`). An expired run of the key is
-- ended (`late`).
-- Race: the insert waits for a transaction that is putting an equal run; the next round of the loop finds that run.
CREATE OR REPLACE FUNCTION requeue(
    l leases, s settlement, now float8,
    OUT tasks text[], OUT dues float8[], OUT touched text[], OUT heir text, OUT late text, OUT late_key text
) LANGUAGE plpgsql AS $$
DECLARE
    due float8 := CASE WHEN s.delay > 0 THEN after(now, s.delay) ELSE l.due_at END;
    lost_count integer := l.losses + (s.charge = 'loss')::integer;
    failed_count integer := l.failures + (s.charge = 'failure')::integer;
    awaited_by_holder boolean := false;  -- the holder waits for the end of this run: do not give way
    holder queue;
    gone record;
BEGIN
    tasks := '{}'; dues := '{}'; touched := '{}';
    LOOP
        INSERT INTO queue ({carried}, fence, awaited, note, hold, failures, losses, due_at, lane_at, expires_at, attempts, error,
            progress, saved, ahead)
        VALUES ({l.carried}, l.fence, l.awaited, l.note, CASE WHEN l.pause_requested THEN 3 ELSE 0 END, failed_count, lost_count,
            due, lane_place(l.task, l.queue, l.priority, due, now), CASE WHEN NOT s.called THEN noted_expiry(l.expires_at, now) END,
            attempts_of(l, s.attempt, now), s.error,
            coalesce(s.progress, l.progress), coalesce(s.saved, l.saved), awaited_by_holder)
        ON CONFLICT DO NOTHING;
        IF FOUND AND NOT awaited_by_holder AND EXISTS (
            SELECT FROM queue q WHERE q.task = l.task AND q.unique_key = l.unique_key AND q.ahead) THEN
            DELETE FROM queue WHERE id = l.id;  -- another equal run was tried too, and is `ahead` already
        ELSIF FOUND THEN
            IF NOT l.pause_requested THEN
                tasks := tasks || lane_name(l.task, l.queue);
                dues := dues || due;
            END IF;
            RETURN;
        END IF;
        SELECT * INTO holder FROM queue q WHERE q.task = l.task AND q.unique_key = l.unique_key
        ORDER BY q.ahead DESC LIMIT 1 FOR UPDATE;
        awaited_by_holder := FOUND AND coalesce(l.id = ANY(holder.needs), false);
        IF FOUND AND holder.hold <> 3 AND holder.expires_at <= now THEN
            IF late IS NOT NULL THEN  -- the second of two: the caller counts only one
                PERFORM count_decisions(ARRAY[l.task::text], ARRAY[late_key], ARRAY['expired'], NULL, ARRAY[late], NULL, NULL, now);
            END IF;
            SELECT * INTO gone FROM end_waiting(ARRAY[holder.id::text], 'expired', NULL, now);
            late := holder.id; late_key := holder.key;
            touched := touched || gone.ended; tasks := tasks || gone.tasks; dues := dues || gone.dues;
            awaited_by_holder := false;
        ELSIF FOUND AND NOT awaited_by_holder THEN
            due := give_way(l, holder, due, failed_count, now);
            IF due IS NOT NULL THEN
                tasks := tasks || lane_name(holder.task, holder.queue);
                dues := dues || due;
            END IF;
            heir := holder.id;
            RETURN;
        END IF;
    END LOOP;
END $$;

-- Settle one run: a requeue, a mark that another run of the batch writes too, a run that others wait for, or a stale settlement.
-- `wanted`: the needs that runs wait for (lock_ends). `spared`: runs that a stop of the group does not end. Returns the verdict,
-- the arrivals for `to_hint`, the touched runs, and what the caller counts as decisions.
-- Lock order: lock_ends has locked the leases and the queued runs that are changed here.
CREATE OR REPLACE FUNCTION settle_one(
    s settlement, now float8, wanted text[], spared text[], OUT verdict text, OUT tasks text[], OUT dues float8[], OUT touched text[],
    OUT d_task text, OUT d_key text, OUT heir text, OUT late text, OUT late_key text,
    OUT stopped text[], OUT stopped_tasks text[], OUT stopped_keys text[], OUT stopped_by text
) LANGUAGE plpgsql AS $$
DECLARE
    l leases;
    final text := s.state;
    why text := s.reason;
    got record;
    met text[];
    room float8[];
    others text[];
    called text[];
BEGIN
    tasks := '{}'; dues := '{}'; touched := '{}';
    SELECT * INTO l FROM leases WHERE id = s.id FOR UPDATE;
    IF NOT FOUND OR l.fence <> s.fence OR l.worker <> s.worker THEN
        verdict := CASE WHEN was_settled(s) THEN 'already' ELSE 'stale' END;
        RETURN;
    ELSIF s.lost AND l.until > now THEN
        verdict := 'stale';
        RETURN;
    END IF;
    verdict := 'applied';
    touched := ARRAY[s.id];
    DELETE FROM leases WHERE id = s.id;
    IF l.gated THEN PERFORM count_running(ARRAY[l.task::text], ARRAY[l.key::text], -1, now); END IF;
    IF l.limits IS NOT NULL THEN PERFORM count_running(l.limits, '{}', -1, now); END IF;
    d_task := l.task; d_key := l.key;
    IF final IS NULL AND l.cancel_requested THEN
        final := 'cancelled'; why := 'cancelled';  -- an ending beats the command of a person, a requeue obeys it
    END IF;
    IF final IS NULL THEN
        SELECT * INTO got FROM requeue(l, s, now);
        tasks := got.tasks; dues := got.dues; touched := touched || got.touched; heir := got.heir;
        late := got.late; late_key := got.late_key;
        IF heir IS NOT NULL THEN
            l.pause_requested := false;
            IF s.delay > 0 THEN l.due_at := after(now, s.delay); END IF;
            IF s.called THEN l.expires_at := NULL; END IF;
            final := 'cancelled'; why := 'superseded';
        END IF;
    END IF;
    IF final IS NOT NULL THEN
        PERFORM finish(l, s, final, why, now);
        IF l.writes_mark AND s.mark THEN PERFORM mark_after(l, final, now); END IF;
        met := met_by(l.id, l.awaited, l.writes_mark, l.task, coalesce(l.unique_key, l.key, ''), final);
        IF met && wanted THEN  -- after the mark is written: meet_needs reads it
            SELECT * INTO got FROM meet_needs(met, now);
            tasks := tasks || got.tasks; dues := dues || got.dues;
        END IF;
        IF l.awaited THEN
            called := put_callbacks(ARRAY[l.id::text], now);
            tasks := tasks || called; dues := dues || array_fill(now, ARRAY[cardinality(called)]);
        END IF;
    END IF;
    IF l.gated OR EXISTS (SELECT FROM specs WHERE name = l.task AND gated) THEN
        room := freed(l.task, l.key, true, now);
        tasks := tasks || array_fill(any_lane(l.task), ARRAY[cardinality(room)]);
        dues := dues || room;
    END IF;
    IF l.limits IS NOT NULL THEN
        others := freed_by(l.limits, now);
        tasks := tasks || others; dues := dues || array_fill(now, ARRAY[cardinality(others)]);
    END IF;
    IF s.stops IS NOT NULL AND final IS NOT NULL THEN
        stopped_by := l.task || ' ' || final;
        SELECT * INTO got FROM cancel_group(s.stops, spared, '{}', 'stopped', stopped_by, now);
        tasks := tasks || got.tasks; dues := dues || got.dues; touched := touched || got.ended;
        stopped := got.ended; stopped_tasks := got.of_task; stopped_keys := got.of_key;
    END IF;
END $$;
