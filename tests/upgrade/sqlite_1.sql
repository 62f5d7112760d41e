-- A store as the schema of version 1 and wire version 1 left it.
BEGIN TRANSACTION;
CREATE TABLE clock (now REAL NOT NULL, specs INTEGER NOT NULL);
INSERT INTO "clock" VALUES(1794753764.30643,2);
CREATE TABLE marks (
    task         TEXT NOT NULL,
    key          TEXT NOT NULL,
    succeeded_at REAL,
    finished_at  REAL,
    failures     INTEGER NOT NULL,
    PRIMARY KEY (task, key)
) WITHOUT ROWID;
INSERT INTO "marks" VALUES('once','2026-11-14',1794753764.304,1794753764.304,0);
INSERT INTO "marks" VALUES('once','2026-11-15',NULL,1794753764.30591,1);
CREATE TABLE rates (
    task     TEXT NOT NULL,
    key      TEXT NOT NULL,                    -- '' for the task's own rate
    full_at  REAL NOT NULL,
    opens_at REAL,                             -- when parked runs of this key may go on; NULL: none wait for that
    PRIMARY KEY (task, key)
) WITHOUT ROWID;
CREATE TABLE runs (
    seq          INTEGER PRIMARY KEY,          -- order of arrival
    id           TEXT    NOT NULL UNIQUE,
    task         TEXT    NOT NULL,
    key          TEXT,
    unique_key   TEXT,                         -- what it may not stand beside; NULL: anything
    marked       INTEGER NOT NULL DEFAULT 0,   -- its ending is remembered in marks
    priority     INTEGER NOT NULL,
    created_at   REAL    NOT NULL,
    body         TEXT    NOT NULL,             -- domain.wire: written by the submitter, never by a worker
    -- where it stands
    state        TEXT    NOT NULL,
    due_at       REAL    NOT NULL,
    expires_at   REAL,
    fence        INTEGER NOT NULL DEFAULT 0,
    failures     INTEGER NOT NULL DEFAULT 0,
    losses       INTEGER NOT NULL DEFAULT 0,
    cancel_asked INTEGER NOT NULL DEFAULT 0,
    pause_asked  INTEGER NOT NULL DEFAULT 0,
    parked       INTEGER NOT NULL DEFAULT 0,   -- its key is saturated: out of the due index until one of them ends
    reason       TEXT,
    note         TEXT,
    error        TEXT,
    finished_at  REAL,
    attempts     TEXT    NOT NULL DEFAULT '[]',
    progress     TEXT,
    saved        TEXT,                         -- the handler's checkpoint
    result       TEXT,
    -- its lease, while running
    worker       TEXT,
    claim_n      INTEGER,                      -- the claim of that worker which took it
    claimed_at   REAL,
    until        REAL,
    offer_at     REAL                          -- lapsed: not offered for rescue before
);
INSERT INTO "runs" VALUES(1,'01a1dfa9-1bc9-74b9-8463-eea03d989002','resize','due-0.png',NULL,0,0,1794753764.29771,'{"v":1,"args":{"path":"due-0.png"},"policy":{"retry":{"limit":3}}}','running',1794753764.29771,NULL,1,0,0,0,0,0,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL,'dead',1,1794753764.30643,1794753794.30643,NULL);
INSERT INTO "runs" VALUES(2,'01a1dfa9-1bca-770b-99d6-0ab94e57d812','resize','due-1.png',NULL,0,0,1794753764.29855,'{"v":1,"args":{"path":"due-1.png"},"policy":{"retry":{"limit":3}}}','queued',1794753764.29855,NULL,0,0,0,0,0,0,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(3,'01a1dfa9-1bcb-7bb1-9d7e-7a38d02965e1','resize','due-2.png',NULL,0,0,1794753764.29917,'{"v":1,"args":{"path":"due-2.png"},"policy":{"retry":{"limit":3}}}','queued',1794753764.29917,NULL,0,0,0,0,0,0,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(4,'01a1dfa9-1bcb-7769-9994-5ea1d7577b2f','resize','later.png',NULL,0,5,1794753764.29976,'{"v":1,"args":{"path":"later.png","width":640},"policy":{"retry":{"limit":3}}}','queued',1894753764.29976,NULL,0,0,0,0,0,0,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(5,'01a1dfa9-1bcc-7efb-b172-abaea383a0ea','resize','paused.png',NULL,0,0,1794753764.30027,'{"v":1,"args":{"path":"paused.png"},"policy":{"retry":{"limit":3}}}','paused',1794753764.30027,NULL,0,0,0,0,0,0,NULL,'not now',NULL,NULL,'[]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(6,'01a1dfa9-1bcd-7869-81f1-fea614e18da2','once','2026-11-14','2026-11-14',1,0,1794753764.30173,'{"v":1,"args":{"day":"2026-11-14"}}','succeeded',1794753764.30173,NULL,1,0,0,0,0,0,NULL,NULL,NULL,1794753764.304,'[{"fence":1,"worker":"w","outcome":"succeeded","claimed_at":1794753764.30277,"ended_at":1794753764.304}]',NULL,NULL,'7',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(7,'01a1dfa9-1bd0-79cf-aae0-39ebdc1cd570','once','2026-11-15','2026-11-15',1,0,1794753764.30483,'{"v":1,"args":{"day":"2026-11-15"}}','failed',1794753764.30483,NULL,1,1,0,0,0,0,'failed',NULL,'{"type":"Boom","message":"no"}',1794753764.30591,'[{"fence":1,"worker":"w","outcome":"failed","claimed_at":1794753764.30529,"ended_at":1794753764.30591,"error":{"type":"Boom","message":"no"}}]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE specs (
    name TEXT PRIMARY KEY,
    spec TEXT NOT NULL                         -- domain.spec as JSON
) WITHOUT ROWID;
INSERT INTO "specs" VALUES('once','{"name":"once","executor":"loop","parameters":["day"],"key":"{day}","policy":{"retry":{}},"guards":{"unique":"done"}}');
INSERT INTO "specs" VALUES('resize','{"name":"resize","limit":{"total":2,"per_key":1},"executor":"loop","retries":3,"parameters":["path","width"],"key":"{path}","policy":{"retry":{"limit":3}},"guards":{}}');
CREATE TABLE stats (
    minute INTEGER NOT NULL,
    task   TEXT    NOT NULL,
    tally  TEXT    NOT NULL,
    PRIMARY KEY (minute, task)
) WITHOUT ROWID;
CREATE TABLE workers (
    name    TEXT    PRIMARY KEY,
    n       INTEGER NOT NULL,                  -- its latest claim
    tasks   TEXT    NOT NULL,                  -- JSON array of names
    seen_at REAL    NOT NULL,
    idle    INTEGER NOT NULL,                  -- 1 from a claim that left seats empty; 2 once hinted; 0 while busy
    wake_at REAL,
    report  TEXT    NOT NULL DEFAULT '{}'
) WITHOUT ROWID;
INSERT INTO "workers" VALUES('dead',1,'["resize"]',1794753764.30643,0,NULL,'{}');
INSERT INTO "workers" VALUES('w',2,'["once"]',1794753764.30529,0,NULL,'{}');
CREATE INDEX runs_due      ON runs (task, priority DESC, due_at, seq) WHERE state = 'queued' AND parked = 0;
CREATE INDEX runs_parked   ON runs (task, key, priority DESC, due_at, seq) WHERE state = 'queued' AND parked = 1;
CREATE INDEX runs_paused   ON runs (task) WHERE state = 'paused';
CREATE INDEX runs_running  ON runs (task, key) WHERE state = 'running';
CREATE INDEX runs_unique   ON runs (task, unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('queued', 'running', 'paused');
CREATE INDEX runs_expiring ON runs (expires_at) WHERE state = 'queued' AND expires_at IS NOT NULL;
CREATE INDEX runs_leased   ON runs (until) WHERE state = 'running';
CREATE INDEX runs_claimed  ON runs (worker, claim_n) WHERE state = 'running';
CREATE INDEX runs_asked    ON runs (id) WHERE state = 'running' AND (cancel_asked = 1 OR pause_asked = 1);
CREATE INDEX runs_ended    ON runs (task, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX rates_opening ON rates (opens_at) WHERE opens_at IS NOT NULL;
COMMIT;
PRAGMA user_version = 1;
PRAGMA application_id = 1919906913;
