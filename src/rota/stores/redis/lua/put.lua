-- with: clock book policies holds hints admit
-- twin: rota/stores/ledger/admit.py
-- put: the only door. Answers the time, then place, run and reason of all that were not simply accepted; behind them
-- those that the plan cancelled, whatever else its group has waiting.
local P_GROUP, P_KEEP, P_NOTE = 1, 2, 3
local items = cmsgpack.unpack(ARGV[3])
admit.reserve(#items)
local answer, planned = { instant(now) }, {}

local function tell(place, run, reason)
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
      tell(#items + #gone - 1, run.id, "cancelled")
    end
  end
  holds.cancel_all(gone, "cancelled", plan[P_NOTE])
end

for i, item in ipairs(items) do
  local run, reason = admit.admit_or_refuse(item)
  planned[run] = true
  if reason ~= "accepted" then tell(i - 1, run, reason) end
end
if ARGV[4] then cancel_others(cmsgpack.unpack(ARGV[4])) end
hints.conclude()
return answer
