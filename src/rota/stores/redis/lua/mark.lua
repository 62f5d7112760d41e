-- with: clock book events policies holds hints audit
-- twin: rota/stores/ledger/mark.py
-- mark: set or clear the mark of each (task, key); answers 0 if the mark is unchanged, else 1. Runs whose needs the mark
-- meets may start.
local answer = { instant(now) }

local function same(one, other)
  return one[M_SUCCEEDED_AT] == other[M_SUCCEEDED_AT] and one[M_FINISHED_AT] == other[M_FINISHED_AT]
    and one[M_FAILURES] == other[M_FAILURES] and (one[M_HOLDER] or false) == (other[M_HOLDER] or false)
end

local function mark(edit)
  local task, key, clear = edit[M_TASK], edit[M_KEY], edit[M_FAILURES] == nil
  if clear then edit = { task, key, false, false, 0 } end
  if same(policies.mark_of(task, key), edit) then return 0 end
  if clear then
    policies.drop_mark(task, key)
    return 1
  end
  policies.put_mark(edit)
  local met, name = { edit[M_FINISHED_AT] and "*" .. task .. " " .. key or nil }, "+" .. task .. " " .. key
  if edit[M_SUCCEEDED_AT] then met[#met + 1] = name end
  holds.meet_needs(met)
  return 1
end

for i, edit in ipairs(cmsgpack.unpack(ARGV[3])) do answer[i + 1] = mark(edit) end
audit.keep(ARGV[4], answer)
hints.conclude()
return answer
