-- with: clock book events policies holds hints audit
-- twin: rota/stores/audit.py
-- audit: keep entries, each with its text and with how many things it says were changed; answers 0 for one that is there.
local answer = { instant(now) }
for i, entry in ipairs(cmsgpack.unpack(ARGV[3])) do
  answer[i + 1] = audit.keep(cmsgpack.pack({ entry[1], entry[2] }), { answer[1], entry[3] }) and 1 or 0
  book.write_all()
end
hints.conclude()
return answer
