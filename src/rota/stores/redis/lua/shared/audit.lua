-- twin: rota/stores/audit.py
-- The audit: the hash `audit` has entries by id, and `audited` their ids by time.
local audit = {}

-- Return how many things the answers of a verb say that it has changed. The first of them is the time.
function audit.changes(answer)
  local sum = 0
  for i = 2, #answer do
    local one = answer[i]
    if type(one) == "number" then sum = sum + one
    elseif one == "added" or one == "changed" or one == "dropped" then sum = sum + 1 end
  end
  return sum
end

-- Keep the entry `packed`: its id and its text. An entry that is there already was sent before.
function audit.keep(packed, answer)
  if not packed then return false end
  local entry = cmsgpack.unpack(packed)
  if call("HGET", ROOT .. "audit", entry[1]) then return false end
  for _, id in ipairs(call("ZRANGE", ROOT .. "audited", 0, -AUDIT_KEPT)) do
    book.hput(ROOT .. "audit", id, false)
    book.zput(ROOT .. "audited", id, false)
  end
  book.hput(ROOT .. "audit", entry[1], cmsgpack.pack({ now, audit.changes(answer), entry[2] }))
  book.zput(ROOT .. "audited", entry[1], now)
  return true
end
