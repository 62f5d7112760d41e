-- twin: rota/domain/schedule.py
-- Schedules: what was declared, as opaque text, and where each stands. LOOK is when one fires or is offered again.
local timetable = {}

local P_ID, P_TEXT, P_TIMES, P_OWNER, P_TASK, P_KEY, P_ANCHOR, P_NEXT, P_FIRES, P_VERSION, P_SINCE, P_PAUSED, P_NOTE, P_RECENT =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
local SCHEDULES, LOOK, OVER = ROOT .. "schedules", ROOT .. "look", ROOT .. "over"
local known = {}

-- What cannot be read is nobody's: it spoils no other, and a declaration takes its place.
function timetable.parse(text)
  local readable, schedule = pcall(cmsgpack.unpack, text)
  return readable and type(schedule) == "table" and schedule
end

function timetable.schedule_of(id)
  local schedule = known[id]
  if schedule == nil then
    schedule = timetable.parse(call("HGET", SCHEDULES, id))
    known[id] = schedule
  end
  return schedule
end

function timetable.load_schedules(ids)
  for first = 1, #ids, ARGUMENTS do
    local last = math.min(#ids, first + ARGUMENTS - 1)
    local texts = call("HMGET", SCHEDULES, unpack(ids, first, last))
    for i = first, last do
      known[ids[i]] = timetable.parse(texts[i - first + 1])
    end
  end
end

function timetable.put_schedule(schedule)
  local id, recent = schedule[P_ID], schedule[P_RECENT]
  known[id] = schedule
  book.hput(SCHEDULES, id, cmsgpack.pack(schedule))
  book.zput(LOOK, id, not schedule[P_PAUSED] and schedule[P_FIRES])
  local last = recent and recent[#recent][1] or schedule[P_SINCE]
  book.zput(OVER, id, schedule[P_OWNER] == "" and not schedule[P_NEXT] and math.max(last, schedule[P_SINCE]))
end

function timetable.drop_schedule(id)
  known[id] = false
  book.hput(SCHEDULES, id, false)
  book.zput(LOOK, id, false)
  book.zput(OVER, id, false)
end
