-- Counts of the work of all days: see Total and Stat in rota/store/reports.py. Processes of earlier versions do not know these
-- tables and do not miss them, so the version of the schema stays the same.

-- How often something has happened. Rows with an `at` have not changed since then; old ones are added to those of `_other`.
CREATE TABLE totals (
    what   TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    reason TEXT    NOT NULL,
    count  INTEGER NOT NULL,
    at     REAL,
    PRIMARY KEY (what, name, reason)
) WITHOUT ROWID;

-- What workers counted in slots of `every` minutes; every 0: since the store was made, for runs of any origin.
CREATE TABLE rollups (
    every  INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    task   TEXT    NOT NULL,
    origin TEXT    NOT NULL,
    tally  TEXT    NOT NULL,
    PRIMARY KEY (every, minute, task, origin)
) WITHOUT ROWID;

-- Processes of earlier versions still write into `stats`.
INSERT INTO rollups SELECT minute > 0, minute, task, '', tally FROM stats;
