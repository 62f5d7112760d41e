-- Pauses of tasks that end by themselves. A process of an earlier version does not know this table: it calls the same functions,
-- so that the pause ends for it too.
CREATE TABLE pauses (
    task  text COLLATE "C" PRIMARY KEY,
    until float8 NOT NULL
);
