"""Builds of the store's SQL functions for tests: one that checks the order of locks, one whose gaps are wide."""

import re

import asyncpg

from rota.stores.postgres import PostgresBackend, schema

RANKS = ("workers", "schedules", "specs", "leases", "names", "queue", "marks", "fans", "decisions", "rollups")
"""The order of functions/locks.sql."""
KEYS = {
    "worker_states": "name",
    "workers": "name",
    "schedules": "id",
    "specs": "name",
    "leases": "id",
    "queue": "id",
    "marks": "task || ' ' || {}.key",
    "fans": "id",
    "decisions": "task || ' ' || {}.key || ' ' || {}.reason",
    "rollups": "every || ' ' || {}.minute || ' ' || {}.task || ' ' || {}.origin",
}
LOCK = re.compile(r"\bFOR (?:NO KEY )?UPDATE\b(?P<how> SKIP LOCKED| NOWAIT)?")
SOURCE = re.compile(r"\bFROM (?P<table>\w+)(?: (?!WHERE|ORDER|FOR|JOIN)(?P<alias>\w+))?")
FUNCTION = re.compile(
    r"^CREATE OR REPLACE FUNCTION (?P<name>\w+)\((?P<head>.*?) AS \$\$(?P<body>.*?)\$\$;", re.S | re.M
)

CHECKER = """
CREATE OR REPLACE FUNCTION noted(class text, key text, waits boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    ranks text[] := '{ranks}';
    held text := coalesce(current_setting('rota.held', true), '');
    highest integer := coalesce(nullif(current_setting('rota.highest', true), '')::integer, 0);
    this text := chr(10) || class || ' ' || key || chr(10);
    rank integer := array_position(ranks, class);
BEGIN
    IF strpos(held, this) > 0 THEN RETURN true; END IF;
    PERFORM set_config('rota.held', held || this, true);
    IF waits AND rank < highest THEN
        RAISE EXCEPTION 'lock order: % (%) after %', class, key, ranks[highest] USING ERRCODE = 'data_exception';
    END IF;
    IF waits THEN PERFORM set_config('rota.highest', greatest(highest, rank)::text, true); END IF;
    RETURN true;
END $$;
"""
# The run of a new lease was locked in the queue, so that nobody else can be inserting the same.
TRIGGER = """
CREATE OR REPLACE FUNCTION noted_{table}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN PERFORM noted('{rank}', {new}, '{table}' <> 'leases'); RETURN NEW; END IF;
    PERFORM noted('{rank}', {old}, true);
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER noted BEFORE INSERT OR UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION noted_{table}();
"""
# No row comes in below the floor of its index (functions/floors.sql).
FLOORED = """
CREATE OR REPLACE FUNCTION floored() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.hold = 0
       AND NEW.lane_at < greatest(NEW.due_at, floor_of(0::smallint, NEW.task, NEW.priority, NEW.queue)) THEN
        RAISE EXCEPTION 'lane: % of % is below its floor', NEW.lane_at, NEW.id USING ERRCODE = 'data_exception';
    END IF;
    IF NEW.hold <> 3 AND NEW.expires_at < floor_of(1::smallint, '', 0::smallint) THEN
        RAISE EXCEPTION 'expiry: % of % is below its floor', NEW.expires_at, NEW.id USING ERRCODE = 'data_exception';
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER floored AFTER INSERT OR UPDATE ON queue FOR EACH ROW EXECUTE FUNCTION floored();
"""
GAPS = 500
"""How many gaps of one transaction are wide. A batch of thousands has thousands of gaps, and would take longer than a
client waits for an answer."""
GAP = f"""CREATE OR REPLACE FUNCTION gap() RETURNS void LANGUAGE plpgsql AS $$
DECLARE paused int := COALESCE(NULLIF(current_setting('rota.gaps', true), ''), '0')::int;
BEGIN
    IF paused < {GAPS} THEN
        PERFORM set_config('rota.gaps', (paused + 1)::text, true);
        PERFORM pg_sleep(random() * {{seconds}});
    END IF;
END $$;"""


def key_of(table: str, row: str) -> str:
    return f"({row}.{KEYS[table].replace('{}', row)})::text"


def rank_of(table: str) -> str:
    return "workers" if table == "worker_states" else table


def checked() -> str:
    """The functions, and before them what notes every lock: the verb fails that waits for one out of order."""
    triggers = [
        TRIGGER.format(table=table, rank=rank_of(table), new=key_of(table, "NEW"), old=key_of(table, "OLD"))
        for table in KEYS
    ]
    text = FUNCTION.sub(_noting, schema.functions())
    text = re.sub(
        r"(PERFORM pg_advisory_xact_lock\w*\(space, bucket\))", r"PERFORM noted('names', bucket::text, true); \1", text
    )
    ranks = "{" + ",".join(RANKS) + "}"
    return "\n".join([CHECKER.replace("{ranks}", ranks), FLOORED, *triggers, text])


def _noting(function: re.Match[str]) -> str:
    """Every SELECT that locks notes the rows that it comes to; their alias is named, so that nothing else is locked."""
    body = function["body"]
    for lock in reversed(list(LOCK.finditer(body))):
        source = _source_of(body, lock.start())
        table, alias = source["table"], source["alias"] or source["table"]
        if table not in KEYS:
            continue
        belongs_to_gate = function["name"] == "unpark"
        waits = str(not lock["how"] and not belongs_to_gate).lower()
        note = f" CROSS JOIN LATERAL (SELECT noted('{rank_of(table)}', {key_of(table, alias)}, {waits})) AS noting"
        clause = lock[0].removesuffix(lock["how"] or "") + f" OF {alias}{lock['how'] or ''}"
        body = body[: source.end()] + note + body[source.end() : lock.start()] + clause + body[lock.end() :]
    return function[0].replace(function["body"], body)


def _source_of(body: str, lock: int) -> re.Match[str]:
    """The table that the SELECT before this lock reads: the last FROM that is not in brackets of its own."""
    for source in reversed(list(SOURCE.finditer(body, 0, lock))):
        between = body[source.end() : lock]
        if all(between[:place].count("(") >= between[:place].count(")") for place in range(len(between) + 1)):
            return source
    raise AssertionError(f"no table for the lock in {body[max(0, lock - 200) : lock]}")


def unordered() -> list[str]:
    """Locks of many rows that would be waited for in no order of their keys."""
    found: list[str] = []
    for function in FUNCTION.finditer(schema.functions()):
        for lock in LOCK.finditer(function["body"]):
            text = function["body"][_source_of(function["body"], lock.start()).start() : lock.end()]
            if not lock["how"] and "= ANY(" in text and "ORDER BY" not in text:
                found.append(f"{function['name']}: {text}")
    return found


def widened(seconds: float) -> str:
    """The functions with a pause of up to so many seconds before each statement that locks or writes."""
    return GAP.format(seconds=seconds) + FUNCTION.sub(_pausing, schema.functions())


PREFIX = re.compile(
    r"(?:\s|--[^\n]*\n|BEGIN\b|ELSE\b|LOOP\b|END IF\b|(?:IF|ELSIF)\b(?:(?!\bTHEN\b).)*\bTHEN\b"
    r"|(?:FOR|FOREACH|WHILE)\b(?:(?!\bLOOP\b)(?!\bUPDATE rates\b).)*\bLOOP\b)*",
    re.S,
)


def _pausing(function: re.Match[str]) -> str:
    if "LANGUAGE plpgsql" not in function["head"] or function["name"] == "gap":
        return function[0]
    begin = re.search(r"^BEGIN$", function["body"], re.M)
    assert begin is not None
    declared, body = function["body"][: begin.start()], function["body"][begin.start() :]
    paused = "".join(_paused(statement) for statement in _statements(body))
    return function[0].replace(function["body"], declared + paused)


def _statements(body: str) -> list[str]:
    """Split at every ';' outside of brackets, texts and comments."""
    found, start, depth = [], 0, 0
    for token in re.finditer(r"--[^\n]*|'(?:[^']|'')*'|[();]", body):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if token[0] == ";" and depth == 0:
            found.append(body[start : token.end()])
            start = token.end()
    return [*found, body[start:]]


def _paused(statement: str) -> str:
    prefix = PREFIX.match(statement)
    assert prefix is not None
    rest = statement[prefix.end() :]
    writes = re.match(r"(WITH|UPDATE|DELETE|INSERT|FOR)\b", rest)
    if not (writes or LOCK.search(rest) or "pg_advisory_xact_lock" in rest):
        return statement
    return f"{statement[: prefix.end()]}PERFORM gap(); {rest}"


async def install(backend: PostgresBackend, build: str) -> None:
    """Bring this build of the functions into the schema of the backend."""
    await backend.migrate()
    connection = await asyncpg.connect(backend.address.dsn)
    try:
        async with connection.transaction():
            await connection.execute(f"SET LOCAL search_path TO {backend.schema}, pg_temp")
            await connection.execute("SET LOCAL check_function_bodies = off")
            await connection.execute(build)
    finally:
        await connection.close()
