#!/bin/sh
# A pull worker in shell: curl and nothing else. One run at a time, without renewals: its lease is as long as a run may take.
#
#   ROTA_SERVER=http://127.0.0.1:8100 ROTA_TOKEN=rota_… sh worker.sh [how many runs; 0: without end]
#
# The task is `count`: how many characters has args.text? The JSON that it needs is simple enough for sed.
set -eu
server="${ROTA_SERVER:-http://127.0.0.1:8100}/api/v1"
worker="${WORKER_NAME:-shell-$$-$(date +%s)}" # a new name for every start
most="${1:-0}"

# Every request may get lost, and can be sent again: the service answers the same.
send() {
  curl --silent --show-error --fail-with-body --retry 8 --retry-all-errors --retry-delay 1 --max-time 90 \
    --request "$1" --header "Authorization: Bearer ${ROTA_TOKEN:-}" --header "Content-Type: application/json" \
    --data "$3" "$server$2"
}

field() { # field NAME: the first text or number of that name
  sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\)\"\{0,1\}.*/\1/p" | head -n 1
}

send PUT /tasks/count '{"description": "Count the characters of a text", "retry": 3}' >/dev/null
echo "worker $worker is ready"
n=1 done=0
while [ "$most" -eq 0 ] || [ "$done" -lt "$most" ]; do
  batch=$(send POST /claim "{\"worker\": \"$worker\", \"n\": $n, \"tasks\": [\"count\"], \"free\": 1, \"lease\": 60, \"wait\": 20}")
  n=$((n + 1))
  case $batch in *'"runs":[]'*) continue ;; esac
  run=$(printf %s "$batch" | field id)
  fence=$(printf %s "$batch" | field fence)
  text=$(printf %s "$batch" | field text)
  said=$(send POST /settle "{\"worker\": \"$worker\", \"outcomes\": [{\"run\": \"$run\", \"fence\": $fence, \"outcome\": \"succeeded\", \"result\": ${#text}}]}")
  echo "$run: $(printf %s "$said" | sed 's/.*\["\([a-z]*\)"\].*/\1/')"
  done=$((done + 1))
done
