-- Runs that wait for the end of others. `parked` is 2 for them: out of the due index, like one whose key is saturated.
ALTER TABLE runs ADD COLUMN needs TEXT;                             -- JSON array: the runs whose end it waits for
ALTER TABLE runs ADD COLUMN awaited INTEGER NOT NULL DEFAULT 0;     -- some run in `waits` waits for its end
ALTER TABLE runs ADD COLUMN rest TEXT;                              -- JSON array: rules to judge it by once they have
CREATE INDEX runs_waiting ON runs (task) WHERE state = 'queued' AND parked = 2;

CREATE TABLE waits (
    ended TEXT NOT NULL,                       -- the run whose end
    run   TEXT NOT NULL,                       -- this one waits for
    PRIMARY KEY (ended, run)
) WITHOUT ROWID;

CREATE TABLE schedules (
    id       TEXT PRIMARY KEY,
    task     TEXT NOT NULL,
    schedule TEXT NOT NULL,                    -- domain.schedule as JSON
    look_at  REAL                              -- when it fires, or is offered again; NULL: paused, or no tick left
);
CREATE INDEX schedules_due ON schedules (look_at) WHERE look_at IS NOT NULL;

CREATE TABLE decisions (
    task     TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    count    INTEGER NOT NULL,
    first_at REAL    NOT NULL,
    last_at  REAL    NOT NULL,
    run      TEXT,
    note     TEXT,
    by       TEXT,
    PRIMARY KEY (task, key, reason)
) WITHOUT ROWID;
CREATE INDEX decisions_old ON decisions (last_at);
