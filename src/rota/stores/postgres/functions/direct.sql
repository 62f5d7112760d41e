-- twin: rota/stores/ledger/direct.py
-- direct: what people ask of workers.

-- Change the orders of workers, and hint them. NULL leaves an order as it is, and a stop cannot be taken back. An answer is false
-- if the worker is unknown or had these orders.
-- Lock order: workers (1), by name; a claim locks the state of its worker first, and `direct` locks no state.
CREATE OR REPLACE FUNCTION direct(
    me text, skew float8, seen float8, names text[], new_seats integer, new_quiet boolean, new_stop boolean,
    OUT now float8, OUT hinted text[], OUT answers boolean[]
) LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    PERFORM FROM workers w WHERE w.name = ANY(names) ORDER BY w.name FOR NO KEY UPDATE;
    now := now_of(skew, seen, false);
    WITH changed AS (
        UPDATE workers w SET seats = coalesce(new_seats, w.seats), quiet = coalesce(new_quiet, w.quiet), stop = w.stop OR new_stop
        WHERE w.name = ANY(names)
          AND (w.seats, w.quiet, w.stop) <> (coalesce(new_seats, w.seats), coalesce(new_quiet, w.quiet), w.stop OR new_stop)
        RETURNING w.name
    )
    SELECT coalesce(array_agg(c.name::text), '{}') INTO hinted FROM changed c;
    answers := ARRAY(SELECT n.name = ANY(hinted) FROM unnest(names) WITH ORDINALITY AS n (name, place) ORDER BY n.place);
    PERFORM send_hints(me, hinted, NULL);
END $$;
