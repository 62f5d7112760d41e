-- twin: rota/stores/ledger/freeze.py
-- freeze: keep every run of the store from starting, and let them start again.

CREATE OR REPLACE FUNCTION is_frozen(now float8) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM freezes f WHERE f.until IS NULL OR f.until > now);
END $$;

-- Without `wanted`, the store is thawed, and idle workers are woken. Lock order: the only row of freezes, before all others.
CREATE OR REPLACE FUNCTION set_freeze(
    me text, skew float8, seen float8, wanted boolean, new_until float8, new_note text, requested_by text,
    OUT now float8, OUT hinted text[], OUT touched text[], OUT answers boolean[]
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    known boolean;
    which text;
    tasks text[] := '{}'; dues float8[] := '{}'; woken float8[];
BEGIN
    touched := '{}'; hinted := '{}';
    now := now_of(skew, seen, true);
    known := is_frozen(now);
    IF wanted AND known AND EXISTS (SELECT FROM freezes f WHERE f.until IS NOT DISTINCT FROM new_until
                                    AND f.note IS NOT DISTINCT FROM new_note AND f.by IS NOT DISTINCT FROM requested_by) THEN
        answers := ARRAY[false];
    ELSIF wanted THEN
        INSERT INTO freezes VALUES (true, now, new_until, new_note, requested_by)
        ON CONFLICT (one) DO UPDATE SET since = now, until = new_until, note = new_note, by = requested_by;
        answers := ARRAY[true];
    ELSE
        DELETE FROM freezes;
        answers := ARRAY[known];
        IF known THEN
            FOR which IN SELECT s.name FROM specs s ORDER BY s.name LOOP
                woken := announce(which, now);
                tasks := tasks || array_fill(which, ARRAY[cardinality(woken)]); dues := dues || woken;
            END LOOP;
            hinted := to_hint(tasks, dues, now);
        END IF;
    END IF;
    IF answers[1] AND (SELECT r.last_value FROM record_until r) > now * {PER_SECOND} THEN
        PERFORM record_events(me, 'tasks', ARRAY[CASE WHEN wanted THEN 'frozen' ELSE 'thawed' END], '{""}', '{""}', NULL, NULL, NULL, now);
    END IF;
    PERFORM send_hints(me, hinted, touched);
END $$;
