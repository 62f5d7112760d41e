-- with: clock book events policies holds hints admit audit
-- twin: rota/stores/ledger/admit.py
-- put: admit runs. Answers the time, then place, run and reason of each run that was not accepted. With a plan, it cancels
-- the other waiting runs of the plan's group, and answers these too.
local P_GROUP, P_KEEP, P_NOTE = 1, 2, 3
local items = cmsgpack.unpack(ARGV[3])
admit.reserve(#items)
local answer = { instant(now) }

local function add_decision(place, run, reason)
  answer[#answer + 1] = place
  answer[#answer + 1] = run
  answer[#answer + 1] = reason
end

local ids, reasons = admit.admit_all(items)
local changed = 0
for i, id in ipairs(ids) do
  if reasons[i] == "accepted" then changed = changed + 1 else add_decision(i - 1, id, reasons[i]) end
end
if ARGV[4] and ARGV[4] ~= "" then
  local plan, planned, keep = cmsgpack.unpack(ARGV[4]), {}, {}
  for _, id in ipairs(ids) do planned[id] = true end
  for _, unique in ipairs(plan[P_KEEP]) do keep[unique] = true end
  local gone = holds.cancel_group(plan[P_GROUP], "cancelled", plan[P_NOTE], planned, keep)
  for i, run in ipairs(gone) do add_decision(#items + i - 1, run.id, "cancelled") end
  changed = changed + #gone
end
audit.keep(ARGV[5], { answer[1], changed })
hints.conclude()
return answer
