-- with: clock book policies holding hinting admitting
-- put: the only door. Answers the time, then place, run and reason of all that were not simply accepted.
local items = cmsgpack.unpack(ARGV[3])
admitting.reserve(#items)
local answer = { instant(now) }
for i, item in ipairs(items) do
  local run, reason = admitting.decide(item)
  if reason ~= "accepted" then
    answer[#answer + 1] = i - 1
    answer[#answer + 1] = run
    answer[#answer + 1] = reason
  end
end
hinting.conclude()
return answer
