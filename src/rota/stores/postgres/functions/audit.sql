-- twin: rota/stores/audit.py
-- audit: entries about what people asked for.

-- Keep an entry, in the statement of the verb that it is about: `answers` are those of the verb. Returns false if the entry was
-- kept before. Lock order: the last of a verb; nobody changes an entry. The oldest entry is deleted, with those that numbers
-- without an entry have left: a look for all old ones would walk over dead rows.
CREATE OR REPLACE FUNCTION keep_audit(of_id text, of_entry text, now float8, answers text[]) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    made bigint;
BEGIN
    INSERT INTO audit (id, at, changed, entry)
    VALUES (of_id, now, (SELECT coalesce(sum(CASE WHEN a ~ '^[0-9]+$' THEN a::bigint
                                                  WHEN a IN ('true', 'added', 'changed', 'dropped') THEN 1 ELSE 0 END), 0)
                         FROM unnest(answers) AS a), of_entry)
    ON CONFLICT (id) DO NOTHING RETURNING number INTO made;
    DELETE FROM audit a WHERE a.number > made - {AUDIT_KEPT} - 100 AND a.number <= made - {AUDIT_KEPT};
    RETURN made IS NOT NULL;
END $$;

-- Keep entries that are not about a verb. An answer is false if the entry was kept before.
CREATE OR REPLACE FUNCTION keep_entries(
    me text, skew float8, seen float8, of_id text[], of_entry text[], changes bigint[], OUT now float8, OUT answers boolean[]
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    now := now_of(skew, seen, true);
    answers := '{}';
    FOR place IN 1 .. cardinality(of_id) LOOP
        answers := answers || keep_audit(of_id[place], of_entry[place], now, ARRAY[changes[place]::text]);
    END LOOP;
END $$;
