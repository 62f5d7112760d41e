-- twin: rota/stores/book.py
-- Specs and rates of tasks, marks of their keys, and decisions.
local policies = {}

local SPECS, OPENINGS, MARKS, DECISIONS = ROOT .. "specs", ROOT .. "openings", ROOT .. "marks", ROOT .. "decisions"

local specs, decisions, totals = {}, {}, {} -- anew

local override_row = "override "
local declared = {} -- anew

local function read_spec(text)
  local readable, found = pcall(cmsgpack.unpack, text)
  return readable and type(found) == "table" and found -- a spec that cannot be read counts as none
end

-- What the code says, with what an operator says in its place: `over` is the row of the overrides.
local function overridden(spec, over)
  if not over or not over[S_OVERRIDES] then return spec end
  local merged = {}
  for place, value in ipairs(spec or over) do merged[place] = value end
  merged[S_OVERRIDES], merged[S_ENABLED] = over[S_OVERRIDES], merged[S_ENABLED] and over[S_ENABLED]
  if over[S_LIMIT] ~= "" then
    merged[S_TOTAL], merged[S_PER_KEY], merged[S_LIMIT] = over[S_TOTAL], over[S_PER_KEY], over[S_LIMIT]
  end
  if over[S_RATE] ~= "" then
    merged[S_INTERVAL], merged[S_BURST], merged[S_EACH] = over[S_INTERVAL], over[S_BURST], over[S_EACH]
    merged[S_RATE] = over[S_RATE]
  end
  return merged
end

-- The spec that is in force. It is not written back: put_spec takes what `declared` gives.
function policies.spec_of(task)
  local spec = specs[task]
  if spec == nil then
    local texts = call("HMGET", SPECS, task, override_row .. task)
    spec = texts[1] and read_spec(texts[1])
    if declared[task] ~= nil then spec = declared[task] end
    local over = texts[2] and read_spec(texts[2])
    if declared[override_row .. task] ~= nil then over = declared[override_row .. task] end
    spec = overridden(spec, over)
    specs[task] = spec
  end
  return spec
end

local freeze = nil -- anew

-- The freeze that is in force; false without one.
function policies.frozen()
  if freeze == nil then
    local text = call("HGET", ROOT .. "freeze", "")
    freeze = text and cmsgpack.unpack(text)
    if freeze and freeze[2] and freeze[2] <= now then freeze = false end
  end
  return freeze
end

-- Whether the pause of a task is in force; a pause may end by itself.
function policies.is_paused(spec)
  local ends = spec[S_PAUSED_UNTIL]
  return spec[S_PAUSED] and (not ends or ends > now)
end

-- Whether no run of this task starts now: the store is frozen, the task is paused, or its code disables it.
function policies.starts_nothing(spec)
  return policies.frozen() or spec and (not spec[S_ENABLED] or policies.is_paused(spec))
end

function policies.is_gated(spec)
  return spec and (spec[S_LIMIT] ~= "" or spec[S_RATE] ~= "" or spec[S_PAUSED_KEYS])
end

-- Add `number` to the total of what is decided about a task for this reason.
function policies.count_decided(task, reason, number)
  local name = pair("decided", pair(task, reason))
  totals[name] = (totals[name] or 0) + number
end

function policies.write_decisions()
  for name, row in pairs(decisions) do
    book.hput(DECISIONS, name, cmsgpack.pack(row))
    book.zput(ROOT .. "decided", name, now)
  end
  for name, number in pairs(totals) do call("HINCRBY", ROOT .. "totals", name, number) end
  decisions, totals = {}, {}
end

-- seldom

-- The spec as it is stored.
function policies.declared(task)
  if declared[task] == nil then
    local text = call("HGET", SPECS, task)
    declared[task] = text and read_spec(text)
  end
  return declared[task]
end

-- Store a spec. `about`: the task that the row is about, if it has another name.
function policies.put_spec(task, spec, about)
  declared[task], specs[about or task] = spec, nil
  book.hput(SPECS, task, cmsgpack.pack(spec))
end

function policies.forget_rates(task)
  local name = ROOT .. "rate:" .. task
  for _, key in ipairs(call("ZRANGE", name, 0, -1)) do book.zput(OPENINGS, pair(task, key), false) end
  call("DEL", name)
end

-- GCRA (generic cell rate algorithm): the instant at which all tokens are there again if no more are taken.
function policies.full_at(task, key)
  return tonumber(call("ZSCORE", ROOT .. "rate:" .. task, key) or 0)
end

function policies.opens_at(spec, full)
  return full - (spec[S_BURST] - 1) * spec[S_INTERVAL]
end

function policies.mark_of(task, key)
  local text = book.hget(MARKS, pair(task, key))
  return text and cmsgpack.unpack(text) or { task, key, false, false, 0 }
end

-- Each task has an index of its own for its marks, because each task keeps its marks for another time (S_MEMORY).
function policies.put_mark(mark)
  local task, name = mark[M_TASK], pair(mark[M_TASK], mark[M_KEY])
  book.hput(MARKS, name, cmsgpack.pack(mark))
  -- A mark without an end is not in the index, so no sweep forgets it.
  book.zput(ROOT .. "marks:" .. task, name, mark[M_FINISHED_AT])
  book.zput(ROOT .. "marked", task, 0)
end

function policies.drop_mark(task, key)
  book.hput(MARKS, pair(task, key), false)
  book.zput(ROOT .. "marks:" .. task, pair(task, key), false)
end

-- Add `number` to the row of (task, key, reason).
function policies.count_decision(task, key, reason, number, run, note, by)
  policies.count_decided(task, reason, number)
  local name = pair(task, pair(key or "", reason))
  local row = decisions[name]
  if not row then
    local text = call("HGET", DECISIONS, name)
    row = text and cmsgpack.unpack(text) or { task, key or "", reason, 0, now }
    decisions[name] = row
  end
  row[D_COUNT] = row[D_COUNT] + number
  row[D_LAST_AT], row[D_RUN], row[D_NOTE], row[D_BY] = now, run or false, note or false, by or false
end
