-- twin: rota/domain/run.py
-- The store's time: the server's clock plus ARGV[1], a skew that only tests set. It does not go back, not even after a
-- failover to a server whose clock is behind: it is no earlier than the stored time (key `clock`) and than ARGV[2], the last
-- time that the caller got. But a known time that is FAR_AHEAD of the server came from a wrong clock. It is ignored, because
-- the store's time would otherwise stand still until the server's clock reaches it.
-- Instants have five decimal digits. redis.call sends numbers exactly (%.17g); tostring and .. would keep fourteen digits.
local ROOT = KEYS[1] -- anew
local call = redis.call -- anew

local function rounded(instant)
  return tonumber(string.format("%.5f", instant))
end

local function after(instant, seconds)
  local exact = instant + seconds
  local later = rounded(exact)
  if later < exact then later = rounded(later + 1 / PER_SECOND) end
  return later
end

local now, now_text = nil -- anew
-- Until when events are recorded; false: nobody reads events.
local recording = nil -- anew
-- Whether runs whose needs are met wait to be released: see holds.release_more.
local releasing = nil -- anew
-- What there is to do of the plan that is under way; false without one. No verb but `plan` does anything meanwhile.
local planning = nil -- anew

local function read_clock()
  local time, stored = call("TIME"), call("MGET", ROOT .. "clock", ROOT .. "record", ROOT .. "releasing", ROOT .. "planning")
  now_text = string.format("%.5f", time[1] + time[2] / 1e6 + tonumber(ARGV[1]))
  now = tonumber(now_text)
  local known = math.max(tonumber(ARGV[2]), tonumber(stored[1] or 0))
  if known > now and known < now + FAR_AHEAD then
    now, now_text = known, string.format("%.5f", known)
  end
  recording = stored[2] and tonumber(stored[2])
  if recording and recording <= now then recording = false end
  releasing, planning = stored[3], stored[4]
end
read_clock() -- anew

local function instant(number)
  return number == now and now_text or string.format("%.5f", number)
end

-- A name for (task, key) that no other pair has.
local function pair(task, key)
  return #task .. ":" .. task .. key
end

-- Two bytes from a key. kh:<number> has those of KEY_BLOCK runs in the order of arrival, so that a list of a key need not read
-- the other runs: NO_KEY of a run without a key, and NO_HASH of one that has to be read.
local function key_hash(key)
  local number = tonumber(redis.sha1hex(key):sub(1, 4), 16) % 65534 + 1
  return string.char(math.floor(number / 256), number % 256)
end
