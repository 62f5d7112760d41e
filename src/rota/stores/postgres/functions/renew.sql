-- twin: rota/stores/ledger/renew.py
-- renew: extend leases.

-- Extend each lease that `workers_` still has with this fence, and store the progress and the checkpoint that its handler
-- has noted. A lapsed lease that no worker has rescued is extended too. Lock order: leases (4), by id.
CREATE OR REPLACE FUNCTION renew(
    me text, skew float8, seen float8, ids text[], fences integer[], workers_ text[], seconds float8, noted boolean[],
    progresses text[], saveds bytea[], OUT now float8, OUT answers text[], OUT touched text[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    PERFORM FROM leases l WHERE l.id = ANY(ids) ORDER BY l.id FOR NO KEY UPDATE;
    now := now_of(skew, seen, true);
    WITH r AS MATERIALIZED (
        SELECT * FROM unnest(ids, fences, workers_, noted, progresses, saveds) WITH ORDINALITY
            AS r (id, fence, worker, noted, progress, saved, place)
    ), renewed AS (
        UPDATE leases l SET until = after(now, seconds), offer_at = NULL, progress = coalesce(r.progress, l.progress),
            saved = coalesce(r.saved, l.saved)
        FROM (SELECT DISTINCT ON (r.id, r.fence, r.worker) * FROM r ORDER BY r.id, r.fence, r.worker, r.place) AS r
        LEFT JOIN leases b ON r.noted AND b.id = r.id  -- the lease as it was before
        WHERE l.id = r.id AND l.fence = r.fence AND l.worker = r.worker
        RETURNING l.id, l.fence, l.worker, l.cancel_requested, l.pause_requested,
            r.noted AND (l.progress, l.saved) IS DISTINCT FROM (b.progress, b.saved) AS changed
    )
    SELECT array_agg(CASE WHEN h.id IS NULL THEN 'lost' WHEN h.cancel_requested THEN 'cancel' WHEN h.pause_requested THEN 'pause'
                          ELSE 'ok' END ORDER BY r.place),
           array_agg(DISTINCT r.id) FILTER (WHERE h.changed)
    INTO answers, touched FROM r LEFT JOIN renewed h ON h.id = r.id AND h.fence = r.fence AND h.worker = r.worker;
    IF touched IS NOT NULL AND (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} THEN
        PERFORM record_events(me, 'runs', array_fill('progress'::text, ARRAY[cardinality(touched)]), touched, NULL, NULL, NULL, NULL, now);
    END IF;
    PERFORM send_hints(me, NULL, touched);
END $$;
