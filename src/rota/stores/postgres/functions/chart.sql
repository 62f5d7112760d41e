-- twin: rota/stores/charts.py
-- The charts: what workers report of their work, added up by the minute.

-- The sums of two lists, place by place. A shorter list counts as if zeros followed.
CREATE OR REPLACE FUNCTION added(one bigint[], two bigint[]) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(coalesce(a, 0) + coalesce(b, 0) ORDER BY place), '{}')
    FROM unnest(one, two) WITH ORDINALITY AS t (a, b, place)
$$;

-- Add the tallies of one report to the totals and to the current minute. Lock order: stats rows are locked by minute and task.
-- Race: two reports may add the first row of a minute and task; readers add the rows up.
CREATE OR REPLACE FUNCTION chart(now float8, t_tasks text[], t_counts text[], t_waits text[], t_durations text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    tally record;
    known stats;
BEGIN
    FOR tally IN SELECT * FROM unnest(ARRAY[{TOTAL}, floor(now / 60)::bigint]) WITH ORDINALITY AS m (minute, place)
                 CROSS JOIN unnest(t_tasks, t_counts, t_waits, t_durations) AS t (task, counts, waits, durations)
                 ORDER BY m.place, t.task COLLATE "C" LOOP
        SELECT s.* INTO known FROM stats s WHERE s.minute = tally.minute AND s.task = tally.task
        ORDER BY s.version DESC LIMIT 1 FOR UPDATE;
        IF FOUND THEN
            UPDATE stats s SET version = s.version + 1, counts = added(s.counts, tally.counts::bigint[]),
                waits = added(s.waits, tally.waits::bigint[]), durations = added(s.durations, tally.durations::bigint[])
            WHERE s.minute = known.minute AND s.task = known.task AND s.version = known.version;
        ELSE
            INSERT INTO stats AS s (minute, task, version, counts, waits, durations)
            VALUES (tally.minute, tally.task, 0, tally.counts::bigint[], tally.waits::bigint[], tally.durations::bigint[])
            ON CONFLICT (minute, task, version) DO UPDATE SET counts = added(s.counts, excluded.counts),
                waits = added(s.waits, excluded.waits), durations = added(s.durations, excluded.durations);
        END IF;
    END LOOP;
END $$;
