-- with: clock book policies holds hints admit
-- twin: rota/stores/ledger/admit.py
-- put: admit runs. Answers the time, then place, run and reason of each run that was not accepted. With a plan, it cancels
-- the other waiting runs of the plan's group, and answers these too.
local P_GROUP, P_KEEP, P_NOTE = 1, 2, 3
local items = cmsgpack.unpack(ARGV[3])
admit.reserve(#items)
local answer, planned = { instant(now) }, {}

local function add_decision(place, run, reason)
  answer[#answer + 1] = place
  answer[#answer + 1] = run
  answer[#answer + 1] = reason
end

local function cancel_others(plan)
  local keep, gone = {}, {}
  for _, unique in ipairs(plan[P_KEEP]) do keep[unique] = true end
  for _, run in ipairs(holds.waiting_in(plan[P_GROUP])) do
    if not planned[run.id] and not (run[UNIQUE_KEY] and keep[run[UNIQUE_KEY]]) then
      gone[#gone + 1] = run
      add_decision(#items + #gone - 1, run.id, "cancelled")
    end
  end
  holds.cancel_all(gone, "cancelled", plan[P_NOTE])
end

for i, item in ipairs(items) do
  local run, reason = admit.admit_or_refuse(item)
  planned[run] = true
  if reason ~= "accepted" then add_decision(i - 1, run, reason) end
end
if ARGV[4] then cancel_others(cmsgpack.unpack(ARGV[4])) end
hints.conclude()
return answer
