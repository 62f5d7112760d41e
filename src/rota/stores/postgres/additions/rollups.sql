-- Counts of the work of all days: see Total and Stat in rota/store/reports.py. Processes of earlier versions do not know these
-- tables and do not miss them, so the version of the schema stays the same.

-- How often something has happened. Verbs append to `counted`, so that none of them waits for another and no row dies with
-- every verb; a sweep adds the appended rows to `totals`, and readers add up both. Rows of totals that have an `at` have not
-- changed since then; old ones are added to those of `_other`.
CREATE TABLE counted (
    what   text   COLLATE "C" NOT NULL,
    name   text   COLLATE "C" NOT NULL,
    reason text   COLLATE "C" NOT NULL,
    count  bigint NOT NULL
);
CREATE TABLE totals (
    what   text   COLLATE "C" NOT NULL,
    name   text   COLLATE "C" NOT NULL,
    reason text   COLLATE "C" NOT NULL,
    count  bigint NOT NULL,
    at     float8,
    PRIMARY KEY (what, name, reason)
);
CREATE INDEX totals_old ON totals (at) WHERE at IS NOT NULL;

-- What workers counted in slots of `every` minutes; every 0: since the store was made, for runs of any origin.
-- The rows die often: they are found by version, the latest first. A slot, task and origin may have several rows, which add up.
CREATE TABLE rollups (
    every     smallint NOT NULL,
    minute    bigint   NOT NULL,
    task      text     COLLATE "C" NOT NULL,
    origin    text     COLLATE "C" NOT NULL,
    version   bigint   NOT NULL,
    counts    bigint[] NOT NULL,                   -- as in stats
    waits     bigint[] NOT NULL,
    durations bigint[] NOT NULL,
    PRIMARY KEY (every, minute, task, origin, version)
);

-- Processes of earlier versions read `stats`; nobody writes it any more.
INSERT INTO rollups SELECT CASE WHEN minute > 0 THEN 1 ELSE 0 END, minute, task, '', version, counts, waits, durations FROM stats;

DO $$
DECLARE
    busy text;
BEGIN
    FOREACH busy IN ARRAY '{counted,totals,rollups}'::text[] LOOP
        EXECUTE format('ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,'
            ' autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_scale_factor = 10)', busy);
    END LOOP;
END $$;
