-- twin: rota/stores/events.py
-- Events: what this script made of runs, tasks and schedules, while somebody reads events (`recording`). The stream `events`
-- has them by number; `event` is the number of the last one. A state is a letter, as in the record of a run.
local events = {}

local recorded = {} -- anew

function events.record(name, of, id, task, key, state, reason, fence, worker)
  if not recording then return end
  recorded[#recorded + 1] = {
    now, name, of, id, task, key or false, state or false, reason or false, fence or 0, worker or false,
  }
end

function events.record_run(name, run, reason, lease)
  if not recording then return end
  lease = lease or run.lease
  local fence, worker = lease and lease[L_FENCE] or run[FENCE], lease and lease[L_WORKER]
  events.record(name, "runs", run.id, run[TASK], run[KEY], run.state, reason or run[REASON], fence, worker)
end

-- Add an event to the stream. MAXLEN bounds what events take of a full server. An event never makes a verb fail: a stream that
-- does not fit to the number, because somebody deleted keys, begins anew, and its readers get a gap.
function events.add(number, text)
  local words = { "XADD", ROOT .. "events", "MAXLEN", "~", EVENTS_KEPT, string.format("%.0f-0", number), "e", text }
  local reply = redis.pcall(unpack(words))
  if type(reply) == "table" and reply.err then
    call("UNLINK", ROOT .. "events")
    call(unpack(words))
  end
end

-- Write the events. Return whether there are any.
function events.write()
  if #recorded == 0 then return false end
  local first = call("INCRBY", ROOT .. "event", #recorded) - #recorded
  for i, row in ipairs(recorded) do
    row[#row + 1] = row[3] == "runs" and call("HGET", GROUPED, row[4])
    events.add(first + i, cmsgpack.pack(row))
  end
  return true
end
