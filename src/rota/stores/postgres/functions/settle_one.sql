-- twin: rota/stores/ledger/settle.py
-- One settlement that needs thought.

-- The attempts that a run keeps when one more comes behind them.
CREATE OR REPLACE FUNCTION latest_attempts(attempts text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cardinality(attempts) >= {ATTEMPTS_KEPT}
                THEN attempts[cardinality(attempts) + 2 - {ATTEMPTS_KEPT}:] ELSE attempts END
$$;

-- The list of a run's attempts with one more; the client renders it but for what only the store knows. It begins with
-- the fence, the worker and the outcome, which is what `was_settled` looks for.
CREATE OR REPLACE FUNCTION attempts_of(l leases, attempt text, now float8) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT latest_attempts(l.attempts)
        || ('{"fence":' || l.fence || ',"worker":' || to_json(l.worker)::text || ',' || attempt
            || ',"claimed_at":' || l.claimed_at || ',"ended_at":' || now || '}')
$$;

-- A zombie shares its fence with the rescuer that settled it as lost: only the same kind of ending is a resend.
CREATE OR REPLACE FUNCTION was_settled(s said) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM runs r CROSS JOIN unnest(r.attempts) AS a
        CROSS JOIN (VALUES ('{"fence":' || s.fence || ',"worker":' || to_json(s.worker)::text || ',')) AS claim (text)
        WHERE r.id = s.id AND starts_with(a, claim.text) AND starts_with(a, claim.text || '"outcome":"lost"') = s.lost)
$$;

-- The end of a run that was called: into finished. Its lease is gone already.
CREATE OR REPLACE FUNCTION finish(l leases, s said, final text, why text, now float8) RETURNS void LANGUAGE sql AS $$
    INSERT INTO finished ({carried}, fence, due_at, expires_at, awaited, cancel_requested, pause_requested, note, failures,
        losses, finished_at, state, reason, result, attempts, error, progress, saved)
    VALUES ({l.carried}, l.fence, l.due_at, l.expires_at, l.awaited, l.cancel_requested, l.pause_requested, l.note,
        l.failures + (s.charge = 'failure')::integer, l.losses + (s.charge = 'loss')::integer, now, final, why, s.result,
        attempts_of(l, s.attempt, now), s.error, coalesce(s.progress, l.progress), coalesce(s.saved, l.saved))
$$;

CREATE OR REPLACE FUNCTION mark_after(l leases, final text, now float8) RETURNS void LANGUAGE sql AS $$
    INSERT INTO marks AS m (task, key, succeeded_at, finished_at, failures)
    SELECT l.task, coalesce(l.unique_key, l.key, ''), CASE final WHEN 'succeeded' THEN now END, now,
           CASE final WHEN 'succeeded' THEN 0 ELSE 1 END
    WHERE final IN ('succeeded', 'failed')
    ON CONFLICT (task, key) DO UPDATE SET finished_at = now,
        succeeded_at = CASE final WHEN 'succeeded' THEN now ELSE m.succeeded_at END,
        failures = CASE final WHEN 'succeeded' THEN 0 ELSE m.failures + 1 END
$$;

-- A run waits again. If another run with its unique key waits already, the run ends as superseded. A waiting run with the
-- same arguments takes its failures and the earlier due time; a waiting run with other arguments keeps its own due time and
-- has no failures. The insert waits for a transaction that is putting an equal run; the next round of the loop finds that
-- run.
CREATE OR REPLACE FUNCTION requeue(
    l leases, s said, now float8,
    OUT tasks text[], OUT dues float8[], OUT touched text[], OUT heir text, OUT late text, OUT late_key text
) LANGUAGE plpgsql AS $$
DECLARE
    due float8 := CASE WHEN s.delay > 0 THEN after(now, s.delay) ELSE l.due_at END;
    lost_count integer := l.losses + (s.charge = 'loss')::integer;
    failed_count integer := l.failures + (s.charge = 'failure')::integer;
    standing boolean := false;  -- an equal run waits for the end of this one: do not yield to it
    holder queue;
    gone record;
BEGIN
    tasks := '{}'; dues := '{}'; touched := '{}';
    LOOP
        INSERT INTO queue ({carried}, fence, awaited, note, hold, failures, losses, due_at, expires_at, attempts, error, progress,
            saved, ahead)
        VALUES ({l.carried}, l.fence, l.awaited, l.note, CASE WHEN l.pause_requested THEN 3 ELSE 0 END, failed_count, lost_count,
            due, CASE WHEN NOT s.called THEN l.expires_at END, attempts_of(l, s.attempt, now), s.error,
            coalesce(s.progress, l.progress), coalesce(s.saved, l.saved), standing)
        ON CONFLICT DO NOTHING;
        IF FOUND AND NOT standing AND EXISTS (
            SELECT FROM queue q WHERE q.task = l.task AND q.unique_key = l.unique_key AND q.ahead) THEN
            DELETE FROM queue WHERE id = l.id;  -- another equal run was tried as well and is `ahead` already
        ELSIF FOUND THEN
            IF NOT l.pause_requested THEN
                tasks := tasks || l.task::text;
                dues := dues || due;
            END IF;
            RETURN;
        END IF;
        SELECT * INTO holder FROM queue q WHERE q.task = l.task AND q.unique_key = l.unique_key
        ORDER BY q.ahead DESC LIMIT 1 FOR UPDATE;
        standing := FOUND AND coalesce(l.id = ANY(holder.needs), false);
        IF FOUND AND holder.hold <> 3 AND holder.expires_at <= now THEN
            IF late IS NOT NULL THEN  -- the second of two: the caller records one
                PERFORM count_decisions(ARRAY[l.task::text], ARRAY[late_key], ARRAY['expired'], NULL, ARRAY[late], NULL, NULL, now);
            END IF;
            SELECT * INTO gone FROM end_waiting(ARRAY[holder.id::text], 'expired', NULL, now);
            late := holder.id; late_key := holder.key;
            touched := touched || gone.ended; tasks := tasks || gone.tasks; dues := dues || gone.dues;
            standing := false;
        ELSIF FOUND AND NOT standing THEN
            UPDATE queue SET due_at = least(due_at, due), failures = greatest(failures, failed_count),
                hold = CASE WHEN hold = 1 THEN 0 ELSE hold END
            WHERE id = holder.id AND body = l.body RETURNING due_at INTO due;
            IF FOUND THEN
                tasks := tasks || holder.task::text;
                dues := dues || due;
            END IF;
            heir := holder.id;
            RETURN;
        END IF;
    END LOOP;
END $$;

-- One settlement that needs thought: a requeue, a mark, someone who waits for the end, which is `wanted` then.
CREATE OR REPLACE FUNCTION settle_one(
    s said, now float8, wanted text[], OUT verdict text, OUT tasks text[], OUT dues float8[], OUT touched text[],
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
    d_task := l.task; d_key := l.key;
    IF final IS NULL AND l.cancel_requested THEN
        final := 'cancelled'; why := 'cancelled';  -- a finish beats a command, a requeue honours it
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
        IF met && wanted THEN  -- after its mark, which decides about the runs that wait for it
            SELECT * INTO got FROM meet_needs(met, now);
            tasks := tasks || got.tasks; dues := dues || got.dues;
        END IF;
    END IF;
    IF l.gated OR EXISTS (SELECT FROM specs WHERE name = l.task AND gated) THEN
        room := freed(l.task, l.key, true, now);
        tasks := tasks || array_fill(l.task::text, ARRAY[cardinality(room)]);
        dues := dues || room;
    END IF;
    IF s.stops IS NOT NULL AND final IS NOT NULL THEN
        stopped_by := l.task || ' ' || final;
        SELECT * INTO got FROM cancel_group(s.stops, '{}', '{}', 'stopped', stopped_by, now);
        tasks := tasks || got.tasks; dues := dues || got.dues; touched := touched || got.ended;
        stopped := got.ended; stopped_tasks := got.of_task; stopped_keys := got.of_key;
    END IF;
END $$;
