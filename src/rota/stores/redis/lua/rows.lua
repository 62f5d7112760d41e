-- with: clock
-- twin: rota/stores/redis/queries.py
-- rows: fields of a hash: those with these names, the latest of an index, or some of those that match, from a cursor on.
local request = cmsgpack.unpack(ARGV[3])
local hash, names, latest, limit, cursor, pattern =
  ROOT .. request[1], request[2], request[3], request[4], request[5], request[6]
if latest then names = call("ZREVRANGE", ROOT .. latest, 0, limit - 1) end
if names then
  local found = {}
  for first = 1, #names, 1000 do -- unpack of Lua gives no more than 8,000 values
    local last = math.min(#names, first + 999)
    local values = call("HMGET", hash, unpack(names, first, last))
    for i = first, last do
      if values[i - first + 1] then
        found[#found + 1] = names[i]
        found[#found + 1] = values[i - first + 1]
      end
    end
  end
  return { instant(now), "0", found }
end
local part = call("HSCAN", hash, cursor, "MATCH", pattern, "COUNT", 1000)
return { instant(now), part[1], part[2] }
