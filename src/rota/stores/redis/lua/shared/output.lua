-- twin: rota/stores/redis/records.py
-- Runs in an answer: id, record, lease and body of each as they are stored. The body is false if it is in the record.
local output = {}

function output.add(answer, id, text, lease)
  local form = text:sub(2, 2)
  answer[#answer + 1] = id
  answer[#answer + 1] = text
  answer[#answer + 1] = lease or false
  answer[#answer + 1] = form < "a" and call("GET", ROOT .. "b:" .. id)
end

function output.add_all(answer, ids)
  for first = 1, #ids, 1000 do
    local keys, last = {}, math.min(#ids, first + 999)
    for i = first, last do keys[#keys + 1] = ROOT .. "r:" .. ids[i] end
    local texts = call("MGET", unpack(keys))
    local leases = call("HMGET", ROOT .. "leases", unpack(ids, first, last))
    for i = first, last do
      local text = texts[i - first + 1]
      if text then output.add(answer, ids[i], text, leases[i - first + 1]) end
    end
  end
end
