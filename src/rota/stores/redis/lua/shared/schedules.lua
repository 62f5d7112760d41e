-- twin: rota/domain/schedule.py
-- Schedules: the declaration of each as a JSON text, which scripts only compare, and its state. LOOK has the time at which
-- a claim offers a schedule; OVER the time of the last firing of those put at run time that have no next tick.
local schedules = {}

local SCHEDULES, LOOK, OVER = ROOT .. "schedules", ROOT .. "look", ROOT .. "over"
local known = {} -- anew

-- A schedule that cannot be read counts as missing: it does not disturb the others, and a declaration replaces it.
function schedules.parse(text)
  local readable, schedule = pcall(cmsgpack.unpack, text)
  return readable and type(schedule) == "table" and schedule
end

function schedules.schedule_of(id)
  local schedule = known[id]
  if schedule == nil then
    schedule = schedules.parse(call("HGET", SCHEDULES, id))
    known[id] = schedule
  end
  return schedule
end

function schedules.load_schedules(ids)
  for first = 1, #ids, ARGUMENTS do
    local last = math.min(#ids, first + ARGUMENTS - 1)
    local texts = call("HMGET", SCHEDULES, unpack(ids, first, last))
    for i = first, last do
      known[ids[i]] = schedules.parse(texts[i - first + 1])
    end
  end
end

function schedules.put_schedule(schedule)
  local id, recent = schedule[SCHED_ID], schedule[SCHED_RECENT]
  known[id] = schedule
  book.hput(SCHEDULES, id, cmsgpack.pack(schedule))
  book.zput(LOOK, id, not schedule[SCHED_PAUSED] and schedule[SCHED_FIRES_AT])
  local last = recent and recent[#recent][1] or schedule[SCHED_SINCE]
  book.zput(OVER, id, schedule[SCHED_OWNER] == "" and not schedule[SCHED_NEXT_AT] and math.max(last, schedule[SCHED_SINCE]))
end

function schedules.drop_schedule(id)
  known[id] = false
  book.hput(SCHEDULES, id, false)
  book.zput(LOOK, id, false)
  book.zput(OVER, id, false)
end
