-- twin: rota/stores/book.py
-- Specs and rates of tasks, marks of their keys, and decisions.
local policies = {}

local SPECS, OPENINGS, MARKS, DECISIONS = ROOT .. "specs", ROOT .. "openings", ROOT .. "marks", ROOT .. "decisions"

local specs, decisions = {}, {}

function policies.spec_of(task)
  local spec = specs[task]
  if spec == nil then
    local text = call("HGET", SPECS, task)
    local readable, found = pcall(cmsgpack.unpack, text)
    spec = readable and type(found) == "table" and found -- a spec that cannot be read counts as none
    specs[task] = spec
  end
  return spec
end

local freeze

-- The freeze that is in force; false without one.
function policies.frozen()
  if freeze == nil then
    local text = call("HGET", ROOT .. "freeze", "")
    freeze = text and cmsgpack.unpack(text)
    if freeze and freeze[2] and freeze[2] <= now then freeze = false end
  end
  return freeze
end

-- Whether no run of this task starts now: the store is frozen, the task is paused, or its code disables it.
function policies.starts_nothing(spec)
  return policies.frozen() or spec and (spec[S_PAUSED] or not spec[S_ENABLED])
end

function policies.is_gated(spec)
  return spec and (spec[S_LIMIT] ~= "" or spec[S_RATE] ~= "" or spec[S_PAUSED_KEYS])
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

function policies.write_decisions()
  for name, row in pairs(decisions) do
    book.hput(DECISIONS, name, cmsgpack.pack(row))
    book.zput(ROOT .. "decided", name, now)
  end
  decisions = {}
end
