-- twin: rota/stores/charts.py
-- The charts: what workers report of their work, added up by slots of time, and totals.

-- The sums of two lists, place by place. A shorter list counts as if zeros followed.
CREATE OR REPLACE FUNCTION added(one bigint[], two bigint[]) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(coalesce(a, 0) + coalesce(b, 0) ORDER BY place), '{}')
    FROM unnest(one, two) WITH ORDINALITY AS t (a, b, place)
$$;

-- Add the tallies of one report to the totals and to the current slots. Without `t_origins`, a process of the version before
-- sends them. Lock order: rollups are locked by slot, task and origin.
-- Race: two reports may add the first row of a slot and task; readers add the rows up.
CREATE OR REPLACE FUNCTION chart(
    now float8, t_tasks text[], t_counts text[], t_waits text[], t_durations text[], t_origins text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    tally record;
    known rollups;
    this_minute bigint := floor(now / 60)::bigint;
BEGIN
    FOR tally IN
        SELECT s.every, CASE WHEN s.every = 0 THEN {TOTAL} ELSE this_minute - this_minute % s.every END AS slot, t.task,
               CASE WHEN s.every = 0 THEN '' ELSE coalesce(t.origin, '') END AS origin, t.counts, t.waits, t.durations
        FROM unnest(ARRAY[0, {slot_lengths}]::smallint[]) AS s (every)
        CROSS JOIN unnest(t_tasks, t_counts, t_waits, t_durations, t_origins) AS t (task, counts, waits, durations, origin)
        ORDER BY s.every, t.task COLLATE "C", t.origin COLLATE "C"
    LOOP
        SELECT r.* INTO known FROM rollups r
        WHERE r.every = tally.every AND r.minute = tally.slot AND r.task = tally.task AND r.origin = tally.origin
        ORDER BY r.version DESC LIMIT 1 FOR UPDATE;
        IF FOUND THEN
            UPDATE rollups r SET version = r.version + 1, counts = added(r.counts, tally.counts::bigint[]),
                waits = added(r.waits, tally.waits::bigint[]), durations = added(r.durations, tally.durations::bigint[])
            WHERE r.every = known.every AND r.minute = known.minute AND r.task = known.task AND r.origin = known.origin
              AND r.version = known.version;
        ELSE
            INSERT INTO rollups AS r (every, minute, task, origin, version, counts, waits, durations)
            VALUES (tally.every, tally.slot, tally.task, tally.origin, 0, tally.counts::bigint[], tally.waits::bigint[],
                    tally.durations::bigint[])
            ON CONFLICT (every, minute, task, origin, version) DO UPDATE SET counts = added(r.counts, excluded.counts),
                waits = added(r.waits, excluded.waits), durations = added(r.durations, excluded.durations);
        END IF;
    END LOOP;
END $$;

-- Add the rows that verbs have appended to the totals, and forget totals that have not changed for long.
-- Lock order: totals, by what, name and reason. Only sweeps lock them.
CREATE OR REPLACE FUNCTION fold_totals(now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- One sweep folds at a time: the rows of `totals` are written in no order that would keep two from waiting for each other.
    IF NOT pg_try_advisory_xact_lock(lock_class('totals'), 0) THEN RETURN; END IF;
    WITH appended AS (
        DELETE FROM counted RETURNING what, name, reason, count
    ), old AS (
        DELETE FROM totals t WHERE t.at <= now - {TOTAL_MEMORY} AND NOT EXISTS (
            SELECT FROM counted c WHERE c.what = t.what AND c.name = t.name AND c.reason = t.reason)
        RETURNING what, '_other' AS name, reason, count
    )
    INSERT INTO totals AS t (what, name, reason, count, at)
    SELECT f.what, f.name, f.reason, CASE f.what WHEN 'succeeded_at' THEN max(f.count) ELSE sum(f.count) END,
           CASE WHEN f.what <> 'decided' AND f.name NOT IN ('', '_other') THEN now END
    FROM (SELECT * FROM appended UNION ALL SELECT * FROM old) AS f GROUP BY f.what, f.name, f.reason
    ON CONFLICT (what, name, reason) DO UPDATE SET at = excluded.at,
        count = CASE t.what WHEN 'succeeded_at' THEN greatest(t.count, excluded.count) ELSE t.count + excluded.count END;
END $$;
