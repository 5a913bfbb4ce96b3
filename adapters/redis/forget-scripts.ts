/** `forget` of the core's machine in Lua, line by line, and what a walk through a scope shows. */
import { RECORD } from './record-format.js'
import { ALLOW_OOM, DONE, NONE, script } from './scripts.js'

/** For a walk: all but the answer, which is shown only if nothing of it is kept. */
export const LISTED = script(`#!lua flags=no-writes
${RECORD}${NONE}
local readable, record = pcall(read)
if not readable or not record then return NONE end
local answer = record.answer
local is_forgotten = answer and not answer.kept and answer.headers == '[]' and answer.status_message == ''
return { redis.call('PTTL', key), shown(record, not is_forgotten and '') }
`)

export const FORGET = script(`${ALLOW_OOM}${RECORD}${NONE}
local state, attempt, fingerprint, removes = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4] == '1'
${DONE}
local function is_same(record)
  return record.state == state and record.attempt == attempt and record.fingerprint == fingerprint
end

local function is_settled(record)
  return record.state == 'completed' or (record.state == 'failed' and not record.uncertain)
end

local record = read()
if not record then return NONE end
if not is_same(record) or not is_settled(record) then return stale(record, '') end
if removes then
  redis.call('DEL', key)
elseif record.state == 'completed' then
  record.answer = { status = 200, status_message = '', headers = '[]', kept = false, body = '' }
  write(record)
end
return OK
`)
