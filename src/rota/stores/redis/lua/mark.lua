-- with: clock book policies holds hints
-- twin: rota/stores/ledger/control.py
-- mark: set or clear the mark of each (task, key); answers 0 if the mark is unchanged, else 1. Runs whose needs the mark
-- meets may start.
local answer = { instant(now) }

local function same(one, other)
  return one[M_SUCCEEDED] == other[M_SUCCEEDED] and one[M_FINISHED] == other[M_FINISHED]
    and one[M_FAILURES] == other[M_FAILURES]
end

local function edit(mark)
  local task, key, clear = mark[M_TASK], mark[M_KEY], mark[M_FAILURES] == nil
  if clear then mark = { task, key, false, false, 0 } end
  if same(policies.mark_of(task, key), mark) then return 0 end
  if clear then
    policies.drop_mark(task, key)
    return 1
  end
  policies.put_mark(mark)
  local met, name = { mark[M_FINISHED] and "*" .. task .. " " .. key or nil }, "+" .. task .. " " .. key
  if mark[M_SUCCEEDED] then met[#met + 1] = name end
  holds.meet_needs(met)
  return 1
end

for i, mark in ipairs(cmsgpack.unpack(ARGV[3])) do answer[i + 1] = edit(mark) end
hints.conclude()
return answer
