-- Flows, chains and plans: runs that belong together.

CREATE TABLE grouped (
    run text COLLATE "C" PRIMARY KEY,              -- in any of the three tables; forgotten with it
    grp text COLLATE "C" NOT NULL
);
CREATE INDEX grouped_by ON grouped (grp, run);
