-- twin: rota/stores/retention.py
-- Forget ended runs: their records, their bodies, and their places in the indexes.
local forget = {}

function forget.groups(ids)
  if call("EXISTS", GROUPED) == 0 then return end
  for first = 1, #ids, ARGUMENTS do
    local some = { unpack(ids, first, math.min(#ids, first + ARGUMENTS - 1)) }
    local groups = call("HMGET", GROUPED, unpack(some))
    for i, id in ipairs(some) do
      if groups[i] then
        book.zput(ROOT .. "g:" .. groups[i], id, false)
        book.hput(GROUPED, id, false)
      end
    end
  end
end

-- Keep the state and the end of a run that is about to be deleted, if its submitter gave the id. `place` is its member of `set`.
function forget.keep_stub(set, place, id)
  local fingerprint = call("HGET", IDS, id)
  if not fingerprint then return end
  call("HSET", IDS, id, fingerprint .. call("GETRANGE", ROOT .. "r:" .. id, 0, 0))
  call("ZADD", IDS_OVER, call("ZSCORE", set, place) or instant(now), id)
end

-- `places` are members of `set`, a history of a task.
function forget.runs(set, places)
  local keys, ids, buckets, own = {}, {}, {}, call("EXISTS", IDS) == 1
  for seq, id in pairs(book.ids_of(places)) do
    ids[#ids + 1] = id
    if own then forget.keep_stub(set, book.place(seq), id) end
    keys[#keys + 1] = ROOT .. "r:" .. id
    keys[#keys + 1] = ROOT .. "b:" .. id
    buckets[math.floor(seq / BUCKET)] = true
    book.hput(ROOT .. "o:" .. math.floor(seq / BUCKET), seq, false)
  end
  for first = 1, #keys, ARGUMENTS do call("DEL", unpack(keys, first, math.min(#keys, first + ARGUMENTS - 1))) end
  book.send("ZREM", set, places)
  forget.groups(ids)
  for bucket in pairs(buckets) do
    book.write_hash(ROOT .. "o:" .. bucket)
    if call("EXISTS", ROOT .. "o:" .. bucket) == 0 then
      call("ZREM", BUCKETS, bucket)
      local block = math.floor(bucket * BUCKET / KEY_BLOCK)
      local last = (block + 1) * KEY_BLOCK / BUCKET - 1
      if call("ZCOUNT", BUCKETS, block * KEY_BLOCK / BUCKET, last) == 0 then call("DEL", ROOT .. "kh:" .. block) end
    end
  end
end
