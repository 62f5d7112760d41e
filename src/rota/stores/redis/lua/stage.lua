-- with: clock
-- twin: rota/stores/redis/plans.py
-- stage: keep a part of a long plan under the token of the plan, where nobody looks but `plan`.
local token, part, text = ARGV[3], ARGV[4], ARGV[5]
call("ZADD", ROOT .. "plans", instant(now), token)
call("HSET", ROOT .. "plan:" .. token, part, text)
return { instant(now) }
