-- twin: rota/domain/run.py
-- The store's time: the server's, plus a test's skew; never back, whichever server answers and whoever asks. A clock that
-- once stood more than an hour ahead was wrong: the store's time goes back then, because standing still would be worse.
-- Instants have five digits. Numbers reach Redis exactly (%.17g), but tostring and .. would keep fourteen digits.
local ROOT = KEYS[1]
local call = redis.call

local function rounded(instant)
  return tonumber(string.format("%.5f", instant))
end

local function after(instant, seconds)
  local exact = instant + seconds
  local later = rounded(exact)
  if later < exact then later = rounded(later + 1 / PER_SECOND) end
  return later
end

local now
do
  local time = call("TIME")
  now = rounded(time[1] + time[2] / 1e6 + tonumber(ARGV[1]))
  local known = math.max(tonumber(ARGV[2]), tonumber(call("GET", ROOT .. "clock") or 0))
  if known > now and known < now + FAR_AHEAD then now = known end
end

local function instant(number)
  return string.format("%.5f", number)
end

-- One name for (task, key) that no other pair shares.
local function pair(task, key)
  return #task .. ":" .. task .. key
end
