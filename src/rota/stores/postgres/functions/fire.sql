-- twin: rota/stores/ledger/admit.py
-- fire: advance schedules and admit the runs of their ticks.

-- Advance the schedule of each tick and admit the runs of the tick. A tick is applied only if its schedule is not paused and
-- still has the version and the next time from which the tick was computed: so two workers cannot fire one tick. The runs of
-- all ticks come in one list; `r_tick` is the place of the tick of each run.
-- Lock order: schedules (2) by id, then as in `put`.
CREATE OR REPLACE FUNCTION fire(
    me text, skew float8, seen float8,
    ids text[], versions integer[], nexts float8[], thens float8[], fires float8[], missed_at float8[],
    missed_count bigint[], missed_reasons text[], missed_words text[], lefts integer[], notes_ text[],
    r_tick integer[], r_nominal float8[], {put_parameters},
    OUT now float8, OUT hinted text[], OUT touched text[], OUT runs text[], OUT reasons text[], OUT applied integer[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    news incoming[];
    tasks text[];
    dues float8[];
    tick record;
    schedule record;
    got record;
    first_next float8;
    m_tasks text[] := '{}'; m_keys text[] := '{}'; m_reasons text[] := '{}'; m_counts bigint[] := '{}';
    m_words text[] := '{}';
BEGIN
    PERFORM lock_schedules(ids);
    now := now_of(skew, seen, true);
    applied := '{}';
    FOR tick IN SELECT * FROM unnest(ids, versions, nexts, thens, fires, missed_count, missed_reasons, missed_words, notes_)
                WITH ORDINALITY AS t (id, version, next_at, upcoming, fires_at, missed, reason, words, note, place) LOOP
        UPDATE schedules s SET change = s.change + 1, next_at = tick.upcoming, fires_at = tick.fires_at,
            note = CASE WHEN tick.note IS NULL THEN s.note ELSE nullif(tick.note, '') END,
            look_at = CASE WHEN tick.fires_at IS NOT NULL THEN greatest(tick.fires_at, now) END
        WHERE s.ctid = schedule_place(tick.id) AND NOT s.paused AND s.version = tick.version AND s.next_at IS NOT DISTINCT FROM tick.next_at
        RETURNING s.task, s.key INTO schedule;
        IF FOUND THEN
            applied := applied || tick.place::integer;
            first_next := least(first_next, tick.fires_at);
            IF tick.missed IS NOT NULL THEN
                m_tasks := m_tasks || schedule.task::text; m_keys := m_keys || schedule.key::text;
                m_reasons := m_reasons || tick.reason; m_counts := m_counts || tick.missed;
                m_words := m_words || tick.words;
            END IF;
        END IF;
    END LOOP;
    news := ARRAY(SELECT ROW({n.put_fields})::incoming
        FROM unnest({put_arrays}, r_tick) WITH ORDINALITY AS n ({put_fields}, tick, place)
        WHERE n.tick = ANY(applied) ORDER BY n.place);
    PERFORM lock_joined(news, NULL);
    PERFORM lock_needs(news, NULL);
    SELECT * INTO got FROM admit_all(news, now);
    runs := got.runs; reasons := got.reasons; tasks := got.tasks; dues := got.dues; touched := got.touched;
    PERFORM count_decisions(m_tasks || got.d_tasks, m_keys || got.d_keys, m_reasons || got.d_reasons, m_counts,
                   array_fill(NULL::text, ARRAY[cardinality(m_tasks)]) || got.d_runs, m_words, NULL, now);
    -- The outcome of each nominal time. The missed times of a tick come before its runs. `other` is the id of the run that
    -- answered in place of the tick's own run; NULL if the tick's own run did, whose id follows from its nominal time.
    WITH firing AS (
        SELECT ids[m.tick] AS id, m.tick, 0 AS place, m.at AS nominal, m.reason, NULL::text AS other
        FROM unnest(missed_at, missed_reasons) WITH ORDINALITY AS m (at, reason, tick)
        WHERE m.at IS NOT NULL AND m.tick = ANY(applied)
        UNION ALL
        SELECT ids[r.tick], r.tick, row_number() OVER (ORDER BY r.place), r.nominal,
               reasons[(row_number() OVER (ORDER BY r.place))::integer],
               nullif(runs[(row_number() OVER (ORDER BY r.place))::integer], r.id)
        FROM unnest(r_tick, r_nominal, p_id) WITH ORDINALITY AS r (tick, nominal, id, place)
        WHERE r.tick = ANY(applied)
    ), outcomes AS (
        SELECT f.id, array_agg('[' || f.nominal || ',"' || f.reason || '"' || coalesce(',' || to_json(f.other)::text, '')
                               || ']' ORDER BY f.tick, f.place) AS firings,
               (array_agg(f.nominal ORDER BY f.tick DESC, f.place DESC))[1] AS last_at, min(lefts[f.tick]) AS remaining,
               count(*) FILTER (WHERE f.place > 0 AND f.reason = 'accepted')::integer AS made
        FROM firing f GROUP BY f.id
    )
    UPDATE schedules s SET change = s.change + 1, last_at = outcomes.last_at,
        made = s.made + CASE WHEN outcomes.remaining IS NULL THEN 0 ELSE outcomes.made END,
        next_at = CASE WHEN outcomes.made >= outcomes.remaining THEN NULL ELSE s.next_at END,
        fires_at = CASE WHEN outcomes.made >= outcomes.remaining THEN NULL ELSE s.fires_at END,
        look_at = CASE WHEN outcomes.made >= outcomes.remaining THEN NULL ELSE s.look_at END,
        recent = (s.recent || outcomes.firings)[
            greatest(1, cardinality(s.recent) + cardinality(outcomes.firings) + 1 - {FIRINGS_KEPT}):]
    FROM (SELECT o.*, schedule_place(o.id) AS place FROM outcomes o OFFSET 0) AS outcomes WHERE s.ctid = outcomes.place;
    IF first_next IS NOT NULL THEN  -- one worker wakes for the first of the next ticks
        tasks := tasks || NULL::text;
        dues := dues || first_next;
    END IF;
    hinted := to_hint(tasks, dues, now);
    IF (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} THEN
        PERFORM record_put(me, runs, reasons, touched, got.d_tasks, got.d_keys, got.d_reasons, got.d_runs, now);
        PERFORM record_fired(me, ids, applied, r_tick, reasons, missed_reasons, now);
    END IF;
    PERFORM send_hints(me, hinted, touched);
END $$;
