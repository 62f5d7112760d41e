-- twin: rota/stores/ledger/admit.py
-- put, and submit: the same in a caller's own transaction.

-- `plain`: no run of the batch has guards or needs, so that one statement admits them all. `runs` is NULL then: all
-- are accepted. Columns where every run has the default come as empty arrays. `planned` is the group of which these are
-- all that shall wait: what else of it does is cancelled, but for those keys, and answered behind the others.
CREATE OR REPLACE FUNCTION put(
    me text, skew float8, seen float8, plain boolean, known text[],
    {put_parameters}, planned text, keep text[], said text,
    OUT now float8, OUT hinted text[], OUT touched text[], OUT runs text[], OUT reasons text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    news incoming[];
    tasks text[];
    dues float8[];
    first text COLLATE "C";
    last text COLLATE "C";
    got record;
    gone record;
    more integer := 0;
BEGIN
    hinted := '{}';
    now := now_of(skew, seen, true);
    IF plain AND NOT EXISTS (SELECT FROM specs s WHERE s.name = ANY(known) AND NOT s.enabled) THEN
        IF EXISTS (SELECT FROM workers w WHERE w.idle = 1) THEN
            SELECT array_agg(n.task), array_agg(coalesce(n.at, now + coalesce(n.delay, 0)))
            INTO tasks, dues FROM unnest(p_task, p_delay, p_at) AS n (task, delay, at);
            hinted := hint(tasks, dues, now);
        END IF;
        INSERT INTO queue ({plain_stored}, writes_mark, priority, created_at, due_at, expires_at)
        SELECT {n.plain_stored}, coalesce(n.writes_mark, false), coalesce(n.priority, 0), now,
               coalesce(n.at, after(now, coalesce(n.delay, 0))),
               CASE WHEN n.expires_after IS NOT NULL
                    THEN after(greatest(now, coalesce(n.at, after(now, coalesce(n.delay, 0)))), n.expires_after)
                    ELSE n.expires_at END
        FROM unnest({plain_arrays}) AS n ({plain_fields})
        ON CONFLICT DO NOTHING;
        -- Only now: the insert may have waited for a claim of the same id, and what that left is seen by a later
        -- statement only. A check in the insert itself made second runs of resent puts.
        -- Ids are in the order of time: where none stands between the first and the last, none of them does.
        SELECT min(i.id COLLATE "C"), max(i.id COLLATE "C") INTO first, last FROM unnest(p_id) AS i (id);
        IF EXISTS (SELECT FROM leases l WHERE l.id BETWEEN first AND last)
            OR EXISTS (SELECT FROM finished f WHERE f.id BETWEEN first AND last) THEN
            DELETE FROM queue q WHERE q.id = ANY(ARRAY(SELECT l.id FROM leases l WHERE l.id = ANY(p_id)
                UNION ALL SELECT f.id FROM finished f WHERE f.id = ANY(p_id)));
        END IF;
    ELSE
        news := ARRAY(SELECT n::incoming FROM unnest({put_arrays}) AS n ({put_fields}));
        PERFORM lock_joined(news, planned);
        PERFORM lock_needs(news, planned);
        now := now_of(skew, seen, true);
        SELECT * INTO got FROM admit_all(news, now);
        runs := got.runs; reasons := got.reasons; tasks := got.tasks; dues := got.dues; touched := got.touched;
        IF planned IS NOT NULL THEN
            SELECT * INTO gone FROM cancel_group(planned, runs, keep, 'cancelled', said, now);
            runs := runs || gone.ended;
            more := cardinality(gone.ended);
            reasons := reasons || array_fill('cancelled'::text, ARRAY[more]);
            tasks := tasks || gone.tasks; dues := dues || gone.dues; touched := touched || gone.ended;
            got.d_tasks := got.d_tasks || gone.of_task; got.d_keys := got.d_keys || gone.of_key;
            got.d_reasons := got.d_reasons || array_fill('cancelled'::text, ARRAY[more]);
            got.d_runs := got.d_runs || gone.ended;
        END IF;
        PERFORM count_decisions(got.d_tasks, got.d_keys, got.d_reasons, NULL, got.d_runs,
            array_fill(NULL::text, ARRAY[cardinality(got.d_runs) - more]) || array_fill(said, ARRAY[more]), NULL, now);
        hinted := hint(tasks, dues, now);
    END IF;
    PERFORM tell(me, hinted, touched);
END $$;

-- put from any driver, in the caller's own transaction: runs as JSON in, [run, reason] pairs as JSON out. That
-- transaction may stay open for long, so no worker's row is locked: each process that listens is told at the commit, and
-- wakes one of its workers.
CREATE OR REPLACE FUNCTION submit(payload text, skew float8 DEFAULT 0, seen float8 DEFAULT 0) RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    now float8 := now_of(skew, seen, false);
    news incoming[] := ARRAY(SELECT n FROM json_populate_recordset(NULL::incoming, payload::json) AS n);
    got record;
BEGIN
    PERFORM lock_joined(news, NULL);
    PERFORM lock_needs(news, NULL);
    SELECT * INTO got FROM admit_all(news, now);
    PERFORM count_decisions(got.d_tasks, got.d_keys, got.d_reasons, NULL, got.d_runs, NULL, NULL, now);
    IF EXISTS (SELECT FROM listeners l WHERE l.until > clock_timestamp()) THEN
        PERFORM pg_notify('rota.' || current_schema(),
            json_build_object('tasks', ARRAY(SELECT DISTINCT n.task FROM unnest(news) AS n), 'runs', got.touched)::text);
    END IF;
    RETURN (SELECT json_agg(json_build_array(a.run, a.reason) ORDER BY a.place)
            FROM unnest(got.runs, got.reasons) WITH ORDINALITY AS a (run, reason, place));
END $$;
