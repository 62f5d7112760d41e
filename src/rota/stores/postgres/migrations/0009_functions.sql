-- Functions are no part of migrations any more: they are made anew whenever they have changed, in the schema as its last
-- migration left it. What of them is there now was made by a version that was never released.

DO $$
DECLARE
    old record;
BEGIN
    FOR old IN SELECT p.oid::regprocedure AS signature FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = current_schema()
    LOOP
        EXECUTE format('DROP FUNCTION %s', old.signature);
    END LOOP;
END $$;

-- Which functions are there: the number grows with every change, so that nobody brings older ones back.
CREATE TABLE functions (
    number integer NOT NULL,
    digest text    NOT NULL,                       -- of their files
    heads  text[]  NOT NULL                        -- of each of them all but its body
);
INSERT INTO functions VALUES (0, '', '{}');

-- A run that comes in, and what is said of one that was claimed.
DROP TYPE IF EXISTS incoming, said;

CREATE TYPE incoming AS (
    id text, task text, key text, unique_key text, marked boolean, priority smallint, delay float8, at float8,
    expires_after float8, expires_at float8, body bytea, uniqueness text, meeting text, max_wait float8, rests text,
    max_pending integer, needs text, behind boolean, grp text
);

CREATE TYPE said AS (
    id text, fence integer, worker text, state text, reason text, result bytea, delay float8, charge text, error text,
    attempt text, lost boolean, called boolean, mark boolean, progress text, saved bytea, stops text
);
